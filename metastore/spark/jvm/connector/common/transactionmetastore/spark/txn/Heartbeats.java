package transactionmetastore.spark.txn;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;

/**
 * The heartbeats of all transactions of this JVM. A heartbeat waits neither for other work nor, as long as there are
 * threads, for a planner that hangs.
 */
final class Heartbeats {
    private static final int THREADS = 4;
    private static final ScheduledExecutorService BEATS = Executors.newScheduledThreadPool(THREADS, daemons("acid-heartbeats"));
    private static final ExecutorService LATER = Executors.newSingleThreadExecutor(daemons("acid-endings"));
    private static final Map<Lease, ScheduledFuture<?>> KEPT = new ConcurrentHashMap<>();

    private Heartbeats() {}

    static void keep(Lease lease) {
        long pause = lease.every.toMillis();
        KEPT.put(lease, BEATS.scheduleAtFixedRate(() -> beat(lease), pause, pause, TimeUnit.MILLISECONDS));
    }

    static void forget(Lease lease) {
        ScheduledFuture<?> beats = KEPT.remove(lease);
        if (beats != null) beats.cancel(false);
    }

    /**
     * Returns a factory of threads that inherit nothing: otherwise Spark's session would be inherited, and never garbage
     * collected.
     */
    private static ThreadFactory daemons(String name) {
        return work -> {
            Thread thread = new Thread(null, work, name, 0, false);
            thread.setDaemon(true);
            return thread;
        };
    }

    /** Runs something soon, for callers that must not wait. The work may wait: for a statement's locks, or for the planner. */
    static void later(Runnable work) {
        LATER.execute(work);
    }

    /** Runs something after a pause, as later() does. */
    static void after(long pauseMs, Runnable work) {
        BEATS.schedule(() -> later(work), pauseMs, TimeUnit.MILLISECONDS);
    }

    /** Ends all transactions that no execution ends: readers, and the blocks of sessions. */
    static void endAll() {
        for (Lease lease : KEPT.keySet()) {
            if (lease.isReader) lease.release();
            else if (lease.isOfBlock) lease.abandon();
        }
    }

    private static void beat(Lease lease) {
        try {
            lease.heartbeat();
        } catch (RuntimeException error) {
            // the next beat tries again: an escaped failure would end the schedule
        }
        if (lease.isOver()) forget(lease);
    }
}
