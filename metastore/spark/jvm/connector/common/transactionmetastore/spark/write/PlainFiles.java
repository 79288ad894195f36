package transactionmetastore.spark.write;

import java.io.Serializable;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import transactionmetastore.spark.files.SerdeFormat;
import transactionmetastore.spark.internals.RowFiles;
import transactionmetastore.spark.plain.PlainStorage;
import transactionmetastore.spark.table.TableShape;
/** A factory of files that hold only rows: by Spark's writer of their format, or by Hive's classes. */
record PlainFiles(RowFiles.Writer files, boolean isOrc) implements Serializable {
    private static final long serialVersionUID = 1L;

    /** Returns the factory. "job": gets the settings that its tasks need. */
    static PlainFiles of(SparkSession spark, TableShape table, Job job) {
        PlainStorage storage = table.plain();
        Map<String, String> options = storage.isSerde() ? Map.of(SerdeFormat.OPTION, storage.serde())
            : Map.of("compression", storage.format().equals("orc") ? "zlib" : "snappy");
        return new PlainFiles(
            storage.files(spark, table.name()).writer(spark, job, options, table.columns()), !storage.isSerde() && storage.format().equals("orc"));
    }

    /** Opens a new file. */
    Opened open(Path path, Configuration settings) {
        return new Opened(path, files.open(path, settings));
    }

    /** An open file that is being written. */
    static final class Opened {
        final Path path;
        private final RowFiles.Opened out;
        private long rows;

        Opened(Path path, RowFiles.Opened out) {
            this.path = path;
            this.out = out;
        }

        void write(InternalRow row) {
            out.write(row);
            ++rows;
        }

        long rows() {
            return rows;
        }

        void close() {
            out.close();
        }
    }
}
