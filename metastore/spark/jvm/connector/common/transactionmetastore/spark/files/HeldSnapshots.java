package transactionmetastore.spark.files;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.scheduler.LiveListenerBus;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Attaches an object to files for as long as anything can read them, and lets the garbage collector look.
 *
 * Readers of files keep references. A plan, and so a view, a cache and all that is made from them, refers to the index of
 * its relations; an RDD refers to the files of its partitions. An object is attached to both; when the garbage collector has
 * collected it, nothing can read any more. Nothing is attached to what Spark copies elsewhere: the name of an RDD, for
 * example, stays in its UI for a thousand stages. Exists in the driver only.
 */
public class HeldSnapshots {
    private static final long TOLD_WITHIN_MS = 1000L;

    /** Let the garbage collector look. */
    public void look(SparkSession spark) {
        look(spark.sparkContext());
    }

    /** Let the garbage collector look. */
    public static void look(SparkContext spark) {
        LiveListenerBus listeners = spark.listenerBus();
        listeners.post(new Nothing());
        try {
            listeners.waitUntilEmpty(TOLD_WITHIN_MS);
        } catch (Exception late) { // a busy driver, where other events come, or another look
        }
        System.gc();
    }

    /**
     * An empty event: a thread of Spark's listener bus keeps the last event until the next comes, and the event of a
     * query's end refers to the query. On a quiet driver the next is a heartbeat, seconds later.
     */
    private static class Nothing implements SparkListenerEvent {
        @Override
        public boolean logEvent() {
            return false;
        }
    }

    /** The relation of files that refers to "hold", as do all that read in it. */
    public static Object holding(LogicalRelation leaf, Object hold) {
        if (!(leaf.relation() instanceof HadoopFsRelation)) return leaf;
        HadoopFsRelation files = (HadoopFsRelation) leaf.relation();
        Object[] parts = new Object[leaf.productArity()]; // how many differs from one Spark to the next
        for (int place = 0; place < parts.length; ++place) parts[place] = leaf.productElement(place);
        parts[0] = new HadoopFsRelation(
            new HeldFiles(files.location(), hold), files.partitionSchema(), files.dataSchema(), files.bucketSpec(),
            files.fileFormat(), files.options(), files.sparkSession());
        return leaf.makeCopy(parts);
    }

    /** The files of another index, equal to it. */
    public static class HeldFiles implements FileIndex {
        private final FileIndex files;
        private final Object hold;

        HeldFiles(FileIndex files, Object hold) {
            this.files = files;
            this.hold = hold;
        }

        @Override
        public scala.collection.immutable.Seq<PartitionDirectory> listFiles(
                scala.collection.immutable.Seq<Expression> partitions,
                scala.collection.immutable.Seq<Expression> data) {
            List<PartitionDirectory> held = new ArrayList<>();
            for (PartitionDirectory directory : CollectionConverters.asJava(files.listFiles(partitions, data))) {
                Object[] values = new Object[partitionSchema().length()];
                for (int key = 0; key < values.length; ++key) {
                    values[key] = directory.values().get(key, partitionSchema().fields()[key].dataType());
                }
                held.add(new PartitionDirectory(new HeldValues(values, hold), directory.files()));
            }
            return PythonUtils.toSeq(held);
        }

        @Override
        public scala.collection.immutable.Seq<Path> rootPaths() {
            return files.rootPaths();
        }

        @Override
        public String[] inputFiles() {
            return files.inputFiles();
        }

        @Override
        public void refresh() {
            files.refresh();
        }

        @Override
        public long sizeInBytes() {
            return files.sizeInBytes();
        }

        @Override
        public StructType partitionSchema() {
            return files.partitionSchema();
        }

        @Override
        public scala.Option<Object> metadataOpsTimeNs() {
            return files.metadataOpsTimeNs();
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof HeldFiles && ((HeldFiles) other).files.equals(files);
        }

        @Override
        public int hashCode() {
            return files.hashCode();
        }
    }

    /** The values of the partition keys, which each file of an RDD has; a task gets them as Spark's own. */
    public static class HeldValues extends GenericInternalRow {
        private static final long serialVersionUID = 1L;
        private final transient Object hold;

        HeldValues(Object[] values, Object hold) {
            super(values);
            this.hold = hold;
        }

        private Object writeReplace() {
            return new GenericInternalRow(values());
        }
    }
}
