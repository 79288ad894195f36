package transactionmetastore.spark.plain;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import org.apache.spark.sql.SparkSession;
import transactionmetastore.spark.files.SerdeFormat;
import transactionmetastore.spark.files.SerdeTable;
import transactionmetastore.spark.internals.RowFiles;
import transactionmetastore.spark.planner.AcidException;

/**
 * The storage of files that hold only rows, as those of insert-only tables. "format": the planner's name; "serde": the
 * properties of Hive's classes if only these can read the files, else null.
 */
public record PlainStorage(String format, String serde) implements Serializable {
    private static final long serialVersionUID = 1L;

    public static PlainStorage of(JsonNode format, JsonNode serde) {
        return new PlainStorage(format.asText(), serde.isTextual() ? serde.asText() : null);
    }

    /** Returns true if Hive's classes read and write the files. */
    public boolean isSerde() {
        return serde != null;
    }

    /** Returns true for ORC files, whose footers count their rows. */
    public boolean isOrc() {
        return format.equals("orc");
    }

    /** Returns Spark's own format for such files, or Hive's classes behind Spark's interface. */
    public RowFiles files(SparkSession spark, String table) {
        if (!isSerde()) {
            return switch (format) {
                case "orc" -> RowFiles.ofOrc();
                case "parquet" -> RowFiles.ofParquet();
                default -> throw new AcidException("InvalidOperationError",
                    "The metastore does not say how " + table + " is stored: read and write it with Hive.");
            };
        }
        String reason = new SerdeTable(serde).refusal(spark.sparkContext().hadoopConfiguration());
        if (reason != null) {
            throw new AcidException("InvalidOperationError", table + " cannot be read or written here: " + reason + ".");
        }
        return new RowFiles(SerdeFormat.of(serde));
    }
}
