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
 * Keeps all transactions of this JVM open. A heartbeat waits neither for other work nor, as long as there are threads, for a
 * planner that hangs.
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

    /** They inherit nothing: Spark lets a thread inherit the session that runs, which would never be garbage then. */
    private static ThreadFactory daemons(String name) {
        return work -> {
            Thread thread = new Thread(null, work, name, 0, false);
            thread.setDaemon(true);
            return thread;
        };
    }

    /** Run something soon, for callers that must not wait. It may wait itself: for a statement's locks, or for the planner. */
    static void later(Runnable work) {
        LATER.execute(work);
    }

    /** The same after a pause. */
    static void after(long pauseMs, Runnable work) {
        BEATS.schedule(() -> later(work), pauseMs, TimeUnit.MILLISECONDS);
    }

    /** End what no execution ends: readers, and the blocks of sessions. */
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
