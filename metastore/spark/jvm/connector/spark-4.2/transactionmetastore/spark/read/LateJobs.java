package transactionmetastore.spark.read;

import org.apache.spark.SparkContext;

/** What Spark keeps of jobs that end behind the end of their execution, as those of an iterator: for ever, if nobody asks it to forget. */
final class LateJobs {
    private LateJobs() {}

    /** Spark shall not refer any more to the jobs of an execution, which have ended. */
    static void forget(SparkContext context, long execution) {
        context.dagScheduler().cleanupQueryJobs(execution);
    }
}
