package transactionmetastore.spark.files;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.CompressionCodecFactory;
import org.apache.hadoop.io.compress.SplittableCompressionCodec;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.DataFrameWriter;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.hive.execution.HiveFileFormat;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.SerializableConfiguration;
import scala.collection.Iterator;

/**
 * A data source of files that Hive's own classes read and write: the input formats, output formats and SerDes that
 * SerdeTable lists.
 *
 * Spark takes all objects of it for equal, as those of its HiveFileFormat: scans differ by the root of their files.
 * SerdeReader and SerdeWriter run in the tasks.
 */
public class SerdeFormat extends HiveFileFormat {
    private static final long serialVersionUID = 1L;
    /** The option of a write that holds SerdeTable's text. */
    public static final String OPTION = "acid.serde";
    private SerdeTable table;

    /** Returns the format of a table whose SerdeTable has this text. */
    public static SerdeFormat of(String text) {
        SerdeFormat format = new SerdeFormat();
        format.table = new SerdeTable(text);
        return format;
    }

    /** Returns a scan. "text": SerdeTable's; the other arguments are those of ListedFiles. */
    public Dataset<?> scan(SparkSession spark, String root, byte[] files, String schema, String text) throws IOException {
        Map<String, String> options = new HashMap<>();
        options.put("ignoreMissingFiles", "false");
        options.put("ignoreCorruptFiles", "false");
        return spark.baseRelationToDataFrame(
            ListedFiles.relation(spark, root, files, (StructType) DataType.fromJson(schema), of(text), options));
    }

    /** Returns the reason why the table's classes cannot be used; null if they can. */
    public String refusal(SparkSession spark, String text) {
        return new SerdeTable(text).refusal(spark.sparkContext().hadoopConfiguration());
    }

    /**
     * Lets a writer write below a path; everything but its format must be set. Returns the reason why a row cannot be
     * stored, or null.
     */
    public String save(DataFrameWriter<?> writer, String path, String text) {
        Thread thread = Thread.currentThread();
        ClassLoader usual = thread.getContextClassLoader();
        thread.setContextClassLoader(new KnowingUs(usual));
        try {
            writer.format(getClass().getName()).option(OPTION, text).save(path);
            return null;
        } catch (Throwable error) {
            StringWriter trace = new StringWriter();
            error.printStackTrace(new PrintWriter(trace, true));
            int at = trace.toString().indexOf(SerdeWriter.REFUSAL);
            if (at < 0) Platform.throwException(error);
            return trace.toString().substring(at + SerdeWriter.REFUSAL.length()).split("\n")[0].trim();
        } finally {
            thread.setContextClassLoader(usual);
        }
    }

    /** A class loader that finds this class although its parent, Spark's loader, does not. */
    public static class KnowingUs extends ClassLoader {
        public KnowingUs(ClassLoader parent) {
            super(parent);
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            if (name.equals(SerdeFormat.class.getName())) return SerdeFormat.class;
            throw new ClassNotFoundException(name);
        }
    }

    @Override
    public boolean supportFieldName(String name) {
        return true;
    }

    @Override
    public boolean supportDataType(DataType type) {
        return true;
    }

    /** Returns true for formats that find the first record of a part by themselves, and have no header or footer lines. */
    @Override
    public boolean isSplitable(SparkSession spark, scala.collection.immutable.Map<String, String> options, Path path) {
        String input = table.properties().getProperty("acid.input");
        if (table.header() > 0) return false;
        if (input.equals("org.apache.hadoop.mapred.TextInputFormat")) {
            Configuration settings = spark.sparkContext().hadoopConfiguration();
            CompressionCodec codec = new CompressionCodecFactory(settings).getCodec(path);
            return codec == null || codec instanceof SplittableCompressionCodec;
        }
        return input.equals("org.apache.hadoop.mapred.SequenceFileInputFormat")
            || input.equals("org.apache.hadoop.hive.ql.io.RCFileInputFormat")
            || input.equals("org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat");
    }

    @Override
    @SuppressWarnings("unchecked")  // Spark's signature has Object here
    public scala.Function1<PartitionedFile, Iterator<InternalRow>> buildReaderWithPartitionValues(
            SparkSession spark, StructType data, StructType partition, StructType required,
            scala.collection.immutable.Seq<Filter> filters, scala.collection.immutable.Map<String, String> options,
            Configuration settings) {
        JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
        Object reader = new SerdeReader(context.broadcast(new SerializableConfiguration(settings)), table, required);
        return (scala.Function1<PartitionedFile, Iterator<InternalRow>>) reader;
    }

    @Override
    public OutputWriterFactory prepareWrite(
            SparkSession spark, Job job, scala.collection.immutable.Map<String, String> options, StructType schema) {
        return new SerdeWriter.Factory(new SerdeTable(textOf(options)));
    }

    private static String textOf(scala.collection.immutable.Map<String, String> options) {
        Object text = options.apply(OPTION);
        return (String) text;
    }
}
