import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.scheduler.ActiveJob;
import org.apache.spark.scheduler.DAGScheduler;
import org.apache.spark.scheduler.LiveListenerBus;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.runtime.AbstractPartialFunction;

/**
 * Tells when nothing that could read the files of a frame is left.
 *
 * What reads files goes on referring to them: a plan, and so a view, a cache, and whatever is derived from them, to the
 * index of its relations, an RDD to the files of its partitions, or to the RDD that reads them. An object hangs on the
 * first two; when the garbage collector finds it, and every RDD that reads, nothing can read any more. Nothing hangs on
 * what Spark copies elsewhere: the name of an RDD, say, stays in the pages of its UI for a thousand stages. Exists in
 * the driver only. Compiled by the compiler that Spark has for its queries, which knows no generics.
 */
public class HeldSnapshots {
    private static final long TOLD_WITHIN_MS = 1000L;

    private final ReferenceQueue ended = new ReferenceQueue();
    private final Set watched = Collections.synchronizedSet(new HashSet());

    /** For another session. */
    public HeldSnapshots another() {
        return new HeldSnapshots();
    }

    /** The same rows; "ended" tells the number once nothing is left that could read them. */
    public Dataset hold(Dataset rows, long number) {
        final Object hold = new Object();
        final Snapshot snapshot = new Snapshot(number);
        watch(hold, snapshot);
        LogicalPlan held = (LogicalPlan) rows.queryExecution().analyzed().transform(new AbstractPartialFunction() {
            public boolean isDefinedAt(Object node) {
                return true;
            }

            public Object applyOrElse(Object node, scala.Function1 otherwise) {
                if (node instanceof LogicalRDD) watch(((LogicalRDD) node).rdd(), snapshot);
                return node instanceof LogicalRelation ? holding((LogicalRelation) node, hold) : node;
            }
        });
        held.setAnalyzed(); // it was, and nothing has changed but where its files are kept
        return Dataset$.MODULE$.ofRows(rows.sparkSession(), held);
    }

    private void watch(Object reader, Snapshot snapshot) {
        snapshot.readers.incrementAndGet();
        watched.add(new Watched(reader, snapshot, ended));
    }

    /** The numbers that have ended since this was last asked, with a comma after each. */
    public String ended() {
        StringBuilder told = new StringBuilder();
        for (Reference one = ended.poll(); one != null; one = ended.poll()) {
            watched.remove(one);
            Snapshot snapshot = ((Watched) one).snapshot;
            if (snapshot.readers.decrementAndGet() == 0) told.append(snapshot.number).append(',');
        }
        return told.toString();
    }

    /** Let the garbage collector look. */
    public void look(SparkSession spark) throws ReflectiveOperationException {
        forgetJobs(spark.sparkContext().dagScheduler());
        LiveListenerBus listeners = spark.sparkContext().listenerBus();
        listeners.post(new Nothing());
        try {
            listeners.waitUntilEmpty(TOLD_WITHIN_MS);
        } catch (Exception late) { // a busy driver, where other events come, or another look
        }
        System.gc();
    }

    /**
     * An event that says nothing: a thread of Spark's listener bus refers to the last event that it told until the next
     * comes, and the event of a query's end refers to the query. On a quiet driver the next is a heartbeat, seconds later.
     */
    private static class Nothing implements SparkListenerEvent {
        public boolean logEvent() {
            return false;
        }
    }

    /** Spark 4.3 goes on referring to jobs that a query ran behind its end, as toLocalIterator's are. */
    private static void forgetJobs(DAGScheduler scheduler) throws ReflectiveOperationException {
        Method[] methods = DAGScheduler.class.getMethods();
        for (int place = 0; place < methods.length && scheduler != null; ++place) {
            if (!methods[place].getName().equals("activeQueryToJobs")) continue;
            Map jobs = (Map) methods[place].invoke(scheduler, new Object[0]);
            for (Iterator each = new ArrayList(jobs.keySet()).iterator(); each.hasNext();) {
                Long query = (Long) each.next();
                Set ran = (Set) jobs.get(query);
                if (ran != null && SQLExecution$.MODULE$.getQueryExecution(query.longValue()) == null && haveEnded(ran)) {
                    Class[] types = {long.class};
                    DAGScheduler.class.getMethod("cleanupQueryJobs", types).invoke(scheduler, new Object[] {query});
                }
            }
        }
    }

    private static boolean haveEnded(Set jobs) {
        for (Iterator each = jobs.iterator(); each.hasNext();) {
            ActiveJob job = (ActiveJob) each.next();
            if (job.numFinished() < job.numPartitions()) return false;
        }
        return true;
    }

    private static Object holding(LogicalRelation leaf, Object hold) {
        if (!(leaf.relation() instanceof HadoopFsRelation)) return leaf;
        HadoopFsRelation files = (HadoopFsRelation) leaf.relation();
        Object[] parts = new Object[leaf.productArity()]; // how many differs from one Spark to the next
        for (int place = 0; place < parts.length; ++place) parts[place] = leaf.productElement(place);
        parts[0] = new HadoopFsRelation(
            new HeldFiles(files.location(), hold), files.partitionSchema(), files.dataSchema(), files.bucketSpec(),
            files.fileFormat(), files.options(), files.sparkSession());
        return leaf.makeCopy(parts);
    }

    /** A number, and how many objects there are that can still read for it. */
    private static class Snapshot {
        final long number;
        final AtomicInteger readers = new AtomicInteger();

        Snapshot(long number) {
            this.number = number;
        }
    }

    private static class Watched extends PhantomReference {
        final Snapshot snapshot;

        Watched(Object reader, Snapshot snapshot, ReferenceQueue ended) {
            super(reader, ended);
            this.snapshot = snapshot;
        }
    }

    /** The files of another index, and equal to that. */
    public static class HeldFiles implements FileIndex {
        private final FileIndex files;
        private final Object hold;

        HeldFiles(FileIndex files, Object hold) {
            this.files = files;
            this.hold = hold;
        }

        public scala.collection.immutable.Seq listFiles(
                scala.collection.immutable.Seq partitions, scala.collection.immutable.Seq data) {
            scala.collection.immutable.Seq found = files.listFiles(partitions, data);
            ArrayList held = new ArrayList();
            for (int place = 0; place < found.size(); ++place) {
                PartitionDirectory one = (PartitionDirectory) found.apply(place);
                Object[] values = new Object[partitionSchema().length()];
                for (int key = 0; key < values.length; ++key) {
                    values[key] = one.values().get(key, partitionSchema().fields()[key].dataType());
                }
                held.add(new PartitionDirectory(new HeldValues(values, hold), one.files()));
            }
            return PythonUtils.toSeq(held);
        }

        public scala.collection.immutable.Seq rootPaths() {
            return files.rootPaths();
        }

        public String[] inputFiles() {
            return files.inputFiles();
        }

        public void refresh() {
            files.refresh();
        }

        public long sizeInBytes() {
            return files.sizeInBytes();
        }

        public StructType partitionSchema() {
            return files.partitionSchema();
        }

        public scala.Option metadataOpsTimeNs() {
            return files.metadataOpsTimeNs();
        }

        public boolean equals(Object other) {
            return other instanceof HeldFiles && ((HeldFiles) other).files.equals(files);
        }

        public int hashCode() {
            return files.hashCode();
        }
    }

    /** The values of the partition keys, which each file of an RDD has; a task gets them as Spark's own. */
    public static class HeldValues extends GenericInternalRow {
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
