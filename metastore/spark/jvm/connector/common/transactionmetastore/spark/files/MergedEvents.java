package transactionmetastore.spark.files;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.JobConf;
import org.apache.orc.OrcConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat;
import org.apache.spark.sql.execution.datasources.orc.OrcUtils;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import scala.collection.Iterator;

/**
 * A scan of the events of ACID files in which each task merges files in the order of ROW__IDs.
 *
 * A task merges the files of a bucket, or in the files of all buckets the events of a range of ROW__IDs. To Spark each task
 * is one file. The scan exists in the driver only; MergedReader runs in the tasks.
 */
public class MergedEvents extends OrcFileFormat {
    private static final long serialVersionUID = 1L;

    private StructType events;
    private String[][] paths;
    private long[][] sizes, lowest, deletes, from, to;
    private int capacity, small;

    /**
     * Returns a scan. "listed": a file for each task, an array of FileStatus in Hadoop's format, whose time is the position
     * of the task in "tasks"; "root": a path that only these files have. "events": the columns of an event, as JSON.
     * "mark": the name of one more column, true for events out of files of delete events. "tasks": for each, as JSON, a
     * list of files (path, size, lowest write id of a row, 1 for delete events; ascending by the third), its first ROW__ID,
     * and the ROW__ID before which it ends; an empty list for no limit. "capacity": rows of a batch. "small": the largest
     * size of a file that is read whole.
     */
    public Dataset<?> scan(
            SparkSession spark, String root, byte[] listed, String events, String mark, String tasks, int capacity, int small)
            throws IOException {
        MergedEvents format = new MergedEvents();
        format.events = (StructType) DataType.fromJson(events);
        format.capacity = capacity;
        format.small = small;
        format.take(Messages.list(tasks));
        Map<String, String> options = new HashMap<>();
        options.put("ignoreMissingFiles", "false");
        options.put("ignoreCorruptFiles", "false");
        StructType shown = format.events.add(mark, DataTypes.BooleanType);
        return spark.baseRelationToDataFrame(ListedFiles.relation(spark, root, listed, shown, format, options));
    }

    private void take(List<?> tasks) {
        int count = tasks.size();
        paths = new String[count][];
        sizes = new long[count][];
        lowest = new long[count][];
        deletes = new long[count][];
        from = new long[count][];
        to = new long[count][];
        for (int task = 0; task < count; ++task) {
            List<?> described = (List<?>) tasks.get(task), files = (List<?>) described.get(0);
            paths[task] = new String[files.size()];
            for (int place = 0; place < paths[task].length; ++place) {
                paths[task][place] = (String) ((List<?>) files.get(place)).get(0);
            }
            sizes[task] = column(files, 1);
            lowest[task] = column(files, 2);
            deletes[task] = column(files, 3);
            from[task] = numbers((List<?>) described.get(1));
            to[task] = numbers((List<?>) described.get(2));
        }
    }

    private static long[] column(List<?> rows, int place) {
        long[] column = new long[rows.size()];
        for (int row = 0; row < column.length; ++row) column[row] = ((Number) ((List<?>) rows.get(row)).get(place)).longValue();
        return column;
    }

    private static long[] numbers(List<?> values) {
        long[] numbers = new long[values.size()];
        for (int place = 0; place < numbers.length; ++place) numbers[place] = ((Number) values.get(place)).longValue();
        return numbers;
    }

    @Override
    public boolean supportBatch(SparkSession spark, StructType schema) {
        return false;
    }

    @Override
    public boolean isSplitable(
            SparkSession spark, scala.collection.immutable.Map<String, String> options, org.apache.hadoop.fs.Path path) {
        return false;
    }

    @Override
    @SuppressWarnings("unchecked")  // Spark's signature has Object here
    public scala.Function1<PartitionedFile, Iterator<InternalRow>> buildReaderWithPartitionValues(
            SparkSession spark, StructType data, StructType partition, StructType required,
            scala.collection.immutable.Seq<Filter> filters, scala.collection.immutable.Map<String, String> options,
            Configuration settings) {
        int[] places = new int[required.length()];
        for (int column = 0; column < places.length; ++column) places[column] = data.fieldIndex(required.fields()[column].name());
        String schema = OrcUtils.getOrcSchemaString(events);
        OrcConf.MAPRED_INPUT_SCHEMA.setString(settings, schema);
        OrcConf.INCLUDE_COLUMNS.setString(settings, "0,1,2,3,4,5");
        OrcConf.IS_SCHEMA_EVOLUTION_CASE_SENSITIVE.setBoolean(settings, SQLConf.get().caseSensitiveAnalysis());
        Object[] sent = {new SerializableConfiguration(new JobConf(settings)), paths, sizes, lowest, deletes, from, to};
        Object reader = new MergedReader(
            JavaSparkContext.fromSparkContext(spark.sparkContext()).broadcast(sent), events, schema, places, capacity, small);
        return (scala.Function1<PartitionedFile, Iterator<InternalRow>>) reader;
    }
}
