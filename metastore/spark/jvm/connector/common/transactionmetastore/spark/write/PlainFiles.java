package transactionmetastore.spark.write;

import java.io.Serializable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.StructType;
import scala.Tuple2;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;
import transactionmetastore.spark.SerdeFormat;
import transactionmetastore.spark.plain.PlainStorage;
import transactionmetastore.spark.table.TableShape;

/** Makes files that hold rows alone: by Spark's writer of their format, or by Hive's classes. "columns": of the files. */
record PlainFiles(OutputWriterFactory writers, StructType columns, boolean isOrc) implements Serializable {
    private static final long serialVersionUID = 1L;

    /** "job": gets the settings that its tasks need. */
    static PlainFiles of(SparkSession spark, PlainStorage storage, TableShape table, Job job) {
        Map<String, String> options = Map$.MODULE$.from(CollectionConverters.asScala(java.util.List.of(new Tuple2<>(
            storage.isSerde() ? SerdeFormat.OPTION : "compression",
            storage.isSerde() ? storage.serde() : storage.format().equals("orc") ? "zlib" : "snappy"))));
        return new PlainFiles(
            storage.files(spark, table.name()).prepareWrite(spark, job, options, table.columns()), table.columns(),
            !storage.isSerde() && storage.format().equals("orc"));
    }

    /** A new file. */
    Opened open(Path path, Configuration settings) {
        TaskAttemptContext context = new TaskAttemptContextImpl(settings, new TaskAttemptID("acid", 0, TaskType.MAP, 0, 0));
        return new Opened(path, writers.newInstance(path.toString(), columns, context));
    }

    /** A file that is written. */
    static final class Opened {
        final Path path;
        private final OutputWriter out;
        private long rows;

        Opened(Path path, OutputWriter out) {
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
