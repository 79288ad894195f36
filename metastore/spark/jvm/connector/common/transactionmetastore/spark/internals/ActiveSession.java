package transactionmetastore.spark.internals;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Option;

/** The active session of this thread, in the driver. */
public final class ActiveSession {
    private ActiveSession() {}

    /** Returns Hadoop's settings, together with those of the session. */
    public static Configuration hadoopSettings() {
        return SparkSession.active().sessionState().newHadoopConf();
    }

    /** Returns the time zone in which the session shows and reads timestamps. */
    public static String zone() {
        return SparkSession.active().sessionState().conf().sessionLocalTimeZone();
    }

    /** Returns true if the session's databases are in a metastore of Hive's kind. */
    public static boolean hasHiveSupport() {
        return SparkSession.active().sharedState().conf().get("spark.sql.catalogImplementation", "in-memory").equals("hive");
    }

    /** Returns the rows of a table, which need not be in a catalog. */
    public static Dataset<Row> rows(Table table) {
        return Dataset$.MODULE$.ofRows(SparkSession.active(), DataSourceV2Relation.create(table, Option.empty(), Option.empty()));
    }
}
