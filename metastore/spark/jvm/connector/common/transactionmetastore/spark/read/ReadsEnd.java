package transactionmetastore.spark.read;

import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import transactionmetastore.spark.txn.AcidTransaction;

/**
 * A listener that ends reads: a read lives as long as the execution that runs it.
 *
 * Rule: a transaction is in use from when an execution reads in it until that execution has ended. Jobs that still run
 * then, as that of an iterator, continue the use. A read outside of executions, as for EXPLAIN or an RDD, is a use for a
 * moment, and then for the jobs outside of executions that have begun in it. Later reads of the same plan are not waited
 * for: they rest on the retention time of replaced files.
 */
public final class ReadsEnd extends SparkListener {
    /** The length of a use outside of executions. Spark Connect, for one, plans a query just before it runs it. */
    private static final long MOMENT_MS = 1000L;
    private static final Long OUTSIDE = null;
    private static final Map<SparkContext, ReadsEnd> WATCHED = Collections.synchronizedMap(new WeakHashMap<>());

    /** A running job, in an execution or outside. */
    private record Job(Long execution, long began, Set<AcidTransaction> reads) {
        boolean isOf(Long other) {
            return other != OUTSIDE ? other.equals(execution) : execution == null || !isRunning(execution);
        }
    }

    private final Map<Long, Set<AcidTransaction>> during = new HashMap<>();
    private final Map<AcidTransaction, Long> planned = new HashMap<>();  // reads outside of executions, with their times
    private final Map<Integer, Job> jobs = new HashMap<>();

    public static void watch(SparkContext context) {
        watching(context);
    }

    private static ReadsEnd watching(SparkContext context) {
        return WATCHED.computeIfAbsent(context, key -> {
            ReadsEnd listener = new ReadsEnd();
            key.addSparkListener(listener);
            return listener;
        });
    }

    /** Notes that this thread's execution or job reads in a transaction from now on. */
    static void reads(SparkContext context, AcidTransaction transaction) {
        Long execution = execution(context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY()));
        watching(context).begin(execution != null && isRunning(execution) ? execution : OUTSIDE, transaction);
    }

    private static Long execution(String id) {
        return id == null ? null : Long.valueOf(id);
    }

    private static boolean isRunning(long execution) {
        return SQLExecution.getQueryExecution(execution) != null;
    }

    private synchronized void begin(Long execution, AcidTransaction transaction) {
        if (execution == OUTSIDE) {
            if (planned.putIfAbsent(transaction, System.currentTimeMillis()) != null) return;
            transaction.use();
            AcidTransaction.after(MOMENT_MS, () -> endOfMoment(transaction));
        } else if (during.computeIfAbsent(execution, key -> new HashSet<>()).add(transaction)) {
            transaction.use();
            if (planned.remove(transaction) != null) transaction.release();  // another use remains, so this calls nobody
        }
    }

    private void endOfMoment(AcidTransaction transaction) {
        Long since;
        synchronized (this) {
            since = planned.remove(transaction);
        }
        if (since != null) end(OUTSIDE, since, Set.of(transaction));
    }

    private void end(Long execution) {
        Set<AcidTransaction> reads;
        synchronized (this) {
            reads = during.remove(execution);
        }
        if (reads == null) return;
        reads.forEach(AcidTransaction::executionEnded);
        end(execution, 0, reads);
    }

    /**
     * Ends the reads of an execution, or the reads outside of executions. Jobs that still run continue their reads.
     * "since": jobs that began earlier read other transactions.
     */
    private void end(Long execution, long since, Set<AcidTransaction> reads) {
        synchronized (this) {
            for (Job job : jobs.values()) {
                if (job.began < since || !job.isOf(execution)) continue;
                for (AcidTransaction read : reads) if (job.reads.add(read)) read.use();
            }
        }
        reads.forEach(AcidTransaction::release);
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
        if (!(event instanceof SparkListenerSQLExecutionEnd end)) return;
        end(end.executionId());
        for (Long other : others()) if (!isRunning(other)) end(other);  // a busy driver drops events
    }

    private synchronized Set<Long> others() {
        return Set.copyOf(during.keySet());
    }

    @Override
    public synchronized void onJobStart(SparkListenerJobStart start) {
        String execution = start.properties() == null ? null : start.properties().getProperty(SQLExecution.EXECUTION_ID_KEY());
        jobs.put(start.jobId(), new Job(execution(execution), start.time(), new HashSet<>()));
    }

    @Override
    public void onJobEnd(SparkListenerJobEnd end) {
        Job job;
        synchronized (this) {
            job = jobs.remove(end.jobId());
        }
        if (job != null) job.reads.forEach(AcidTransaction::release);
    }

    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd end) {
        AcidTransaction.endAll();
    }
}
