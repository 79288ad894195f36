package transactionmetastore.spark;

import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.scheduler.LiveListenerBus;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Reports frames whose files nothing can read any more.
 *
 * Readers of files keep references. A plan, and so a view, a cache and all that is made from them, refers to the index of
 * its relations; an RDD refers to the files of its partitions, or to the RDD that reads them. An object is attached to the
 * first two; when the garbage collector has collected it, and every RDD that reads, nothing can read any more. Nothing is
 * attached to what Spark copies elsewhere: the name of an RDD, for example, stays in its UI for a thousand stages. Exists
 * in the driver only.
 */
public class HeldSnapshots {
    private static final long TOLD_WITHIN_MS = 1000L;

    private final ReferenceQueue<Object> ended = new ReferenceQueue<>();
    private final Set<Object> watched = Collections.synchronizedSet(new HashSet<Object>());

    /** The object of another session. */
    public HeldSnapshots another() {
        return new HeldSnapshots();
    }

    /** The same rows; "ended" has the number once nothing is left that could read them. */
    public Dataset<?> hold(Dataset<?> rows, long number) {
        final Object hold = new Object();
        final Snapshot snapshot = new Snapshot(number);
        watch(hold, snapshot);
        LogicalPlan held = transformed(rows.queryExecution().analyzed(), new Holding(this, hold, snapshot));
        held.setAnalyzed(); // as before: only the holder of its files has changed
        return Dataset$.MODULE$.ofRows(rows.sparkSession(), held);
    }

    @SuppressWarnings("unchecked")  // see Holding
    private static LogicalPlan transformed(LogicalPlan plan, Object rule) {
        Object made = plan.transform((scala.PartialFunction<LogicalPlan, LogicalPlan>) rule);
        return (LogicalPlan) made;
    }

    private void watch(Object reader, Snapshot snapshot) {
        snapshot.readers.incrementAndGet();
        watched.add(new Watched(reader, snapshot, ended));
    }

    /** The numbers that have ended since the last call, as JSON. */
    public String ended() {
        List<Long> numbers = new ArrayList<>();
        for (Reference<?> reader = ended.poll(); reader != null; reader = ended.poll()) {
            watched.remove(reader);
            Snapshot snapshot = ((Watched) reader).snapshot;
            if (snapshot.readers.decrementAndGet() == 0) numbers.add(snapshot.number);
        }
        return Messages.text(numbers);
    }

    /** Let the garbage collector look. */
    public void look(SparkSession spark) throws ReflectiveOperationException {
        look(spark.sparkContext());
    }

    /** Let the garbage collector look. */
    public static void look(SparkContext spark) throws ReflectiveOperationException {
        SparkInternals.forgetJobs(spark.dagScheduler());
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

    /** Each relation of a plan with an object on it. Of Object, since the compiler at the user's makes no bridges. */
    @SuppressWarnings({"rawtypes", "serial", "unchecked"})
    private static class Holding extends AbstractPartialFunction<Object, Object> {
        private final HeldSnapshots all;
        private final Object hold;
        private final Snapshot snapshot;

        Holding(HeldSnapshots all, Object hold, Snapshot snapshot) {
            this.all = all;
            this.hold = hold;
            this.snapshot = snapshot;
        }

        @Override
        public boolean isDefinedAt(Object node) {
            return true;
        }

        @Override
        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            if (node instanceof LogicalRDD) all.watch(((LogicalRDD) node).rdd(), snapshot);
            return node instanceof LogicalRelation ? holding((LogicalRelation) node, hold) : node;
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

    /** A number, and the count of objects that can still read for it. */
    private static class Snapshot {
        final long number;
        final AtomicInteger readers = new AtomicInteger();

        Snapshot(long number) {
            this.number = number;
        }
    }

    private static class Watched extends PhantomReference<Object> {
        final Snapshot snapshot;

        Watched(Object reader, Snapshot snapshot, ReferenceQueue<Object> ended) {
            super(reader, ended);
            this.snapshot = snapshot;
        }
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
