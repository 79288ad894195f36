package transactionmetastore.spark.internals;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

/** Access to files in one of Spark's formats, or in a format with Spark's interface. */
public record RowFiles(FileFormat format) {
    public static RowFiles ofOrc() {
        return new RowFiles(new OrcFileFormat());
    }

    public static RowFiles ofParquet() {
        return new RowFiles(new ParquetFileFormat());
    }

    /** Returns true if rows of these columns are read in batches. */
    public boolean haveBatches(SparkSession spark, StructType columns) {
        return format.supportBatch(spark, columns);
    }

    /** Returns true if parts of a file can be read separately. */
    public boolean areSplitable(SparkSession spark, boolean inBatches, String path) {
        return format.isSplitable(spark, options(inBatches), new Path(path));
    }

    /**
     * Returns the reader of the columns "read" of "row", and of the partition keys "keys". Rows that do not meet the
     * filters may be left out.
     */
    public Reader reader(
            SparkSession spark, StructType row, StructType keys, StructType read, List<Filter> filters, boolean inBatches,
            Configuration settings) {
        return new Reader(format.buildReaderWithPartitionValues(
            spark, row, keys, read, CollectionConverters.asScala(filters).toSeq(), options(inBatches), new Configuration(settings)));
    }

    /** Returns a writer of files in tasks. "job": gets the settings that tasks need. */
    public Writer writer(SparkSession spark, Job job, Map<String, String> options, StructType columns) {
        return new Writer(format.prepareWrite(spark, job, scala(options), columns), columns);
    }

    private static scala.collection.immutable.Map<String, String> options(boolean inBatches) {
        return scala(Map.of(FileFormat.OPTION_RETURNING_BATCH(), String.valueOf(inBatches)));
    }

    private static scala.collection.immutable.Map<String, String> scala(Map<String, String> options) {
        List<Tuple2<String, String>> pairs = new ArrayList<>();
        options.forEach((key, value) -> pairs.add(new Tuple2<>(key, value)));
        return Map$.MODULE$.from(CollectionConverters.asScala(pairs));
    }

    /** A reader of files in tasks. */
    public record Reader(Function1<PartitionedFile, Iterator<InternalRow>> files) implements Serializable {
        private static final long serialVersionUID = 1L;

        /** Returns the rows of a part of a file, or batches of them. "keys": the values of its partition; "size": of the whole file. */
        public Iterator<?> read(String path, long start, long length, long size, InternalRow keys) {
            return files.apply(new PartitionedFile(
                keys, SparkPath.fromPath(new Path(path)), start, length, new String[0], 0L, size, Map$.MODULE$.empty()));
        }
    }

    /** A writer of files in tasks. */
    public record Writer(OutputWriterFactory files, StructType columns) implements Serializable {
        private static final long serialVersionUID = 1L;

        public Opened open(Path path, Configuration settings) {
            TaskAttemptID attempt = new TaskAttemptID("acid", 0, TaskType.MAP, 0, 0);
            return new Opened(files.newInstance(path.toString(), columns, new TaskAttemptContextImpl(settings, attempt)));
        }
    }

    /** An open file that is being written. */
    public record Opened(OutputWriter out) {
        public void write(InternalRow row) {
            out.write(row);
        }

        public void close() {
            out.close();
        }
    }
}
