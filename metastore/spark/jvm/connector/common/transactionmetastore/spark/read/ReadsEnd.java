package transactionmetastore.spark.read;

import java.lang.ref.WeakReference;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.sql.execution.CommandResultExec;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.v2.BaseCacheTableExec;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import transactionmetastore.spark.txn.AcidTransaction;

/**
 * Ends the use of a transaction when the execution that read in it has ended.
 *
 * That is each scan of its plan, also of branches that turned out to be empty, which the plan that ran lacks; and whatever was
 * planned while it ran, for EXPLAIN or a command of Spark's own. What a cache holds is read again when its blocks are lost. So scans below a cache go on until the
 * garbage collector finds nothing left that refers to them, and so do those of an iterator, which reads on when its execution
 * is over, and of an RDD.
 */
public final class ReadsEnd extends SparkListener {
    private static final Map<SparkContext, ReadsEnd> WATCHED = Collections.synchronizedMap(new WeakHashMap<>());

    private final Map<Long, CopyOnWriteArrayList<AcidTransaction.Use>> during = new ConcurrentHashMap<>();

    private final Map<Integer, Long> jobs = new HashMap<>();  // those that run: their executions
    private final WeakReference<SparkContext> context;

    private ReadsEnd(SparkContext context) {
        this.context = new WeakReference<>(context);
    }

    public static void watch(SparkContext context) {
        watching(context);
    }

    private static ReadsEnd watching(SparkContext context) {
        return WATCHED.computeIfAbsent(context, key -> {
            ReadsEnd listener = new ReadsEnd(key);
            key.addSparkListener(listener);
            return listener;
        });
    }

    /** A use has begun, in the execution that runs in this thread, if there is one. */
    static void isUsed(SparkContext context, AcidTransaction.Use use) {
        String execution = context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
        if (execution == null) return;
        if (watching(context).during.computeIfAbsent(Long.valueOf(execution), key -> new CopyOnWriteArrayList<>()).addIfAbsent(use)) use.isOfExecution();
    }

    /** Whether an execution runs in this thread. */
    static boolean isRunning(SparkContext context) {
        return context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY()) != null;
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
        if (!(event instanceof SparkListenerSQLExecutionEnd end)) return;
        List<AcidTransaction.Use> begun = during.remove(end.executionId());
        if (begun != null) begun.forEach(AcidTransaction.Use::executionEnded);
        if (end.qe() == null || isOfIterator(end)) return;
        SparkPlan plan = executed(end);
        if (plan == null) {
            if (begun != null) begun.forEach(AcidTransaction.Use::end);
            return;
        }
        Set<AcidScan> read = Collections.newSetFromMap(new IdentityHashMap<>());
        Set<AcidScan> cached = Collections.newSetFromMap(new IdentityHashMap<>());
        boolean isCaching = collect(plan, read, cached);
        read.removeAll(cached);
        read.forEach(AcidScan::wasExecuted);  // of each, before the end of any lets go of a snapshot
        read.forEach(AcidScan::release);
        if (begun == null || isCaching) return;
        for (AcidTransaction.Use use : begun) if (cached.stream().noneMatch(scan -> scan.isUsedBy(use))) use.end();
    }

    /** What was executed; null of a statement that Spark could not analyse or plan, which throws that here once more. */
    private static SparkPlan executed(SparkListenerSQLExecutionEnd end) {
        try {
            return end.qe().executedPlan();
        } catch (Exception error) {
            return null;
        }
    }

    @Override
    public void onJobStart(SparkListenerJobStart start) {
        String execution = start.properties() == null ? null : start.properties().getProperty(SQLExecution.EXECUTION_ID_KEY());
        if (execution != null) jobs.put(start.jobId(), Long.valueOf(execution));
    }

    /** Spark goes on referring to what an iterator has read. */
    @Override
    public void onJobEnd(SparkListenerJobEnd end) {
        Long execution = jobs.remove(end.jobId());
        if (execution == null || jobs.containsValue(execution) || SQLExecution.getQueryExecution(execution) != null) return;
        SparkContext of = context.get();
        if (of != null) LateJobs.forget(of, execution);
    }

    /** PySpark's has no name. */
    private static boolean isOfIterator(SparkListenerSQLExecutionEnd end) {
        return end.executionName().isEmpty() || end.executionName().contains("toLocalIterator");
    }

    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd end) {
        AcidTransaction.endAll();
    }

    /** Whether the plan fills a cache. */
    private static boolean collect(SparkPlan plan, Set<AcidScan> read, Set<AcidScan> cached) {
        if (plan instanceof BatchScanExec scan && scan.scan() instanceof AcidScan acid) read.add(acid);
        if (plan instanceof BatchScanExec scan && scan.scan() instanceof FooterScan answer) read.add(answer.counted());
        boolean isCaching = plan instanceof BaseCacheTableExec;
        if (plan instanceof AdaptiveSparkPlanExec adaptive) {
            isCaching |= collect(adaptive.executedPlan(), read, cached) | collect(adaptive.initialPlan(), read, cached);
        }
        if (plan instanceof QueryStageExec stage) isCaching |= collect(stage.plan(), read, cached);
        if (plan instanceof CommandResultExec command) isCaching |= collect(command.commandPhysicalPlan(), read, cached);
        if (plan instanceof InMemoryTableScanExec scan) collect(scan.relation().cachedPlan(), cached, cached);
        for (var children = plan.children().iterator(); children.hasNext();) isCaching |= collect(children.next(), read, cached);
        for (var inner = plan.subqueries().iterator(); inner.hasNext();) collect(inner.next(), read, cached);
        return isCaching;
    }
}
