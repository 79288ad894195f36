package transactionmetastore.spark.txn;

import java.util.List;
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

    private static ThreadFactory daemons(String name) {
        return work -> {
            Thread thread = new Thread(work, name);
            thread.setDaemon(true);
            return thread;
        };
    }

    /** Run something soon, for callers that must not wait. It may wait itself: for a statement's locks, or for the planner. */
    static void later(Runnable work) {
        LATER.execute(work);
    }

    static void releaseReaders() {
        for (Lease lease : readers()) lease.release();
    }

    /** The open transactions of this JVM that only read. */
    static List<Lease> readers() {
        return KEPT.keySet().stream().filter(lease -> lease.reader != null && !lease.isOver()).toList();
    }

    static void after(long pauseMs, Runnable work) {
        BEATS.schedule(work, pauseMs, TimeUnit.MILLISECONDS);
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
