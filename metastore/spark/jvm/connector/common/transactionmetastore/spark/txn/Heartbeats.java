package transactionmetastore.spark.txn;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/** Keeps all transactions of this JVM open, with one thread. */
final class Heartbeats {
    private static final ScheduledExecutorService THREAD = Executors.newSingleThreadScheduledExecutor(work -> {
        Thread thread = new Thread(work, "acid-heartbeats");
        thread.setDaemon(true);
        return thread;
    });
    private static final Map<Lease, ScheduledFuture<?>> KEPT = new ConcurrentHashMap<>();

    private Heartbeats() {}

    static void keep(Lease lease) {
        long pause = lease.every.toMillis();
        KEPT.put(lease, THREAD.scheduleAtFixedRate(() -> beat(lease), pause, pause, TimeUnit.MILLISECONDS));
    }

    static void forget(Lease lease) {
        ScheduledFuture<?> beats = KEPT.remove(lease);
        if (beats != null) beats.cancel(false);
    }

    /** Run something soon, on the same thread: for callers that must not wait. */
    static void later(Runnable work) {
        THREAD.execute(work);
    }

    static void releaseReaders() {
        for (Lease lease : KEPT.keySet()) if (lease.isReader) lease.release();
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
