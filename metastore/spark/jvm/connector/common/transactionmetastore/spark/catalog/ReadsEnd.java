package transactionmetastore.spark.catalog;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import transactionmetastore.spark.read.AcidScan;

/**
 * Ends the transaction of a read when the execution that read in it has ended.
 *
 * What a cache holds is read again when its blocks are lost: scans below a cache are no part of the plans that use it, and
 * end when the garbage collector finds nothing left that refers to them. So do those of an iterator, which goes on reading
 * when its execution is over, of an RDD, and of a plan that was only explained.
 */
final class ReadsEnd extends SparkListener {
    private static final Map<SparkContext, ReadsEnd> WATCHED = Collections.synchronizedMap(new WeakHashMap<>());

    static void watch(SparkContext context) {
        WATCHED.computeIfAbsent(context, one -> {
            ReadsEnd listener = new ReadsEnd();
            one.addSparkListener(listener);
            return listener;
        });
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
        if (!(event instanceof SparkListenerSQLExecutionEnd end) || end.qe() == null) return;
        if (end.executionName().contains("toLocalIterator")) return;
        release(end.qe().executedPlan());
    }

    private static void release(SparkPlan plan) {
        if (plan instanceof BatchScanExec scan && scan.scan() instanceof AcidScan acid) acid.release();
        if (plan instanceof AdaptiveSparkPlanExec adaptive) release(adaptive.executedPlan());
        if (plan instanceof QueryStageExec stage) release(stage.plan());
        for (var children = plan.children().iterator(); children.hasNext();) release(children.next());
        for (var inner = plan.subqueries().iterator(); inner.hasNext();) release(inner.next());
    }
}
