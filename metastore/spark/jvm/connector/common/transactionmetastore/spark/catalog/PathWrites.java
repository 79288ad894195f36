package transactionmetastore.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.WriteToStream;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.execution.command.InsertIntoDataSourceDirCommand;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;
import org.apache.spark.sql.hive.execution.InsertIntoHiveDirCommand;
import org.apache.spark.sql.hive.execution.InsertIntoHiveTable;
import scala.Option;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;
import transactionmetastore.spark.planner.AcidException;

/**
 * Refuses what Spark would write by a path into the directory of a transactional table, or around it: no catalog is asked there, and
 * what is written lies beside the transactions, or an overwrite removes the table's files.
 *
 * Where nobody can say whose directory it is, Spark writes as it would without us: plain files must not need a planner.
 */
final class PathWrites extends AbstractFunction1<LogicalPlan, BoxedUnit> {
    private static final String STREAMED = "FileSink[";
    private static final Duration LONGEST = Duration.ofSeconds(10);

    private final org.apache.spark.sql.classic.SparkSession spark;

    PathWrites(SparkSession spark) {
        this.spark = (org.apache.spark.sql.classic.SparkSession) spark;
    }

    @Override
    public BoxedUnit apply(LogicalPlan plan) {
        List<Path> places = new ArrayList<>();
        collect(plan, places);
        for (Path place : places) requireNobodys(place);
        return BoxedUnit.UNIT;
    }

    private static void collect(LogicalPlan plan, List<Path> places) {
        if (plan instanceof InsertIntoHadoopFsRelationCommand write && isElsewhere(write.catalogTable())) places.add(write.outputPath());
        if (plan instanceof InsertIntoHiveTable write && isElsewhere(Option.apply(write.table()))) add(write.table().storage(), places);
        if (plan instanceof InsertIntoHiveDirCommand write) add(write.storage(), places);
        if (plan instanceof InsertIntoDataSourceDirCommand write) add(write.storage(), places);
        if (plan instanceof SaveIntoDataSourceCommand write && write.options().contains("path")) {
            places.add(new Path(write.options().apply("path")));
        }
        if (plan instanceof WriteToStream write) {
            String sink = write.sink().toString();  // Spark shows its path nowhere else
            if (sink.startsWith(STREAMED)) places.add(new Path(sink.substring(STREAMED.length(), sink.length() - 1)));
        }
        for (var children = plan.children().iterator(); children.hasNext();) collect(children.next(), places);
    }

    /** A managed table has a directory of its own. */
    private static boolean isElsewhere(Option<CatalogTable> table) {
        return table.isEmpty() || !table.get().tableType().equals(CatalogTableType.MANAGED());
    }

    private static void add(CatalogStorageFormat storage, List<Path> places) {
        Option<URI> place = storage.locationUri();
        if (place.isDefined()) places.add(new Path(place.get()));
    }

    private void requireNobodys(Path place) {
        CatalogManager catalogs = spark.sessionState().catalogManager();
        for (var names = catalogs.listCatalogs(Option.empty()).iterator(); names.hasNext();) {
            String table = catalogs.catalog(names.next()) instanceof AcidCatalogBase catalog ? table(catalog, place) : "";
            if (!table.isEmpty()) throw new AcidException("UNSUPPORTED", "Nothing is written to " + place + ", because the transactional table "
                + table + " has its files there: readers would miss the new ones, or the table would lose its own. Use INSERT INTO "
                + table + ", writeTo(\"" + table + "\").append() or insertInto, or write somewhere else.");
        }
    }

    /** The table there; "" where there is none, or nobody knows. */
    private String table(AcidCatalogBase catalog, Path place) {
        try {
            Configuration settings = spark.sessionState().newHadoopConf();
            String whole = place.getFileSystem(settings).makeQualified(place).toString();
            JsonNode answer = catalog.planner().call("table_at", Map.of("place", whole), LONGEST);
            return answer.path("table").asText("");
        } catch (IOException | AcidException error) {
            return "";
        }
    }
}
