package transactionmetastore.spark.txn;

import java.lang.ref.WeakReference;
import java.time.Duration;
import org.apache.spark.SparkContext;
import transactionmetastore.spark.files.HeldSnapshots;

/**
 * Lets the garbage collector look, at growing intervals, for what nothing can read any more, and for blocks whose session is gone: it
 * seldom does by itself, and the Cleaner and who needs a table for himself wait for it. Between two looks lies 50 times what the last has taken.
 *
 * Of reads, only frames, and what Spark has left of an execution, as a cache, an iterator or an RDD: what runs ends by itself.
 */
final class Looks {
    private static final Duration FIRST = Duration.ofSeconds(5), LONGEST = Duration.ofSeconds(60);
    private static final int SHARE = 50;

    private static Duration pause = FIRST;
    private static boolean isDue;

    private Looks() {}

    static synchronized void whileAnythingIsKept(WeakReference<SparkContext> context) {
        pause = FIRST;
        whileAnybodyReads(context);
    }

    /** The same for the many reads that run: they hurry nobody. */
    static synchronized void whileAnybodyReads(WeakReference<SparkContext> context) {
        if (isDue) return;
        pause = FIRST;
        later(context, pause);
    }

    private static synchronized void later(WeakReference<SparkContext> context, Duration wait) {
        isDue = true;
        Heartbeats.after(wait.toMillis(), () -> look(context));
    }

    private static void look(WeakReference<SparkContext> of) {
        SparkContext context = of.get();
        long began = System.nanoTime();
        try {
            if (context != null && isAnythingKept()) HeldSnapshots.look(context);
        } catch (RuntimeException error) {
            // the next look is as good
        }
        goOn(of, Duration.ofNanos(System.nanoTime() - began));
    }

    private static synchronized void goOn(WeakReference<SparkContext> of, Duration took) {
        isDue = false;
        if (of.get() == null || of.get().isStopped() || !mayAnythingBeKept()) return;
        Duration least = took.multipliedBy(SHARE);
        later(of, least.compareTo(pause) > 0 ? least : pause);
        pause = pause.multipliedBy(2).compareTo(LONGEST) > 0 ? LONGEST : pause.multipliedBy(2);
    }

    static boolean isAnythingKept() {
        return Heartbeats.all().stream().anyMatch(lease -> lease.isOfBlock || lease.reader != null && lease.reader.isIdle());
    }

    static boolean mayAnythingBeKept() {
        return Heartbeats.all().stream().anyMatch(lease -> lease.isOfBlock || lease.reader != null);
    }
}
