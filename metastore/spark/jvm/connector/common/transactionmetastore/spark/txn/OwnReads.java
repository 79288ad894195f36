package transactionmetastore.spark.txn;

import java.util.Collection;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.SparkSession;
import transactionmetastore.spark.files.HeldSnapshots;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;

/**
 * Reads of this JVM that a statement of this JVM would wait for, because it needs a table for itself.
 *
 * Rule: a read whose execution runs is waited for. What nothing can read any more goes at once: the garbage collector is asked.
 * What the same session can still read by a frame, a cache or an iterator, it would wait for in vain: the statement is refused.
 */
public final class OwnReads {
    /** After each look: who reports what is garbage needs a moment. py4j says up to a second late what Python has let go of. */
    private static final long[] PAUSES_MS = {20, 100, 400, 800, 800, 800};

    private OwnReads() {}

    /** Those of the tables ("db.table") that something of this JVM has locked to read, though nothing of it runs. */
    static Set<String> of(PlannerClient metastore, Collection<String> tables) {
        return of(metastore, tables, null);
    }

    private static Set<String> of(PlannerClient metastore, Collection<String> tables, String session) {
        Set<String> read = new TreeSet<>();
        for (Lease lease : Heartbeats.readers()) {
            if (lease.planner != metastore || !lease.reader.isIdle() || session != null && !lease.reader.session.equals(session)) continue;
            for (String table : tables) if (lease.reader.tables.contains(table)) read.add(table);
        }
        return read;
    }

    /** For a statement of the session in this thread that needs tables for itself. Throws AcidException: the session reads one. */
    public static void giveWay(PlannerClient metastore, Collection<String> tables) {
        AcidTransaction.endPlans(metastore, tables);
        if (of(metastore, tables).isEmpty()) return;
        String session = AcidTransaction.session();
        for (long pause : PAUSES_MS) {
            HeldSnapshots.look(SparkSession.active().sparkContext());
            pause(pause);
            if (of(metastore, tables, session).isEmpty()) return;
        }
        throw new AcidException("InvalidOperationError", String.join(", ", of(metastore, tables, session)) + " is locked by a DataFrame of this session that "
            + "was read from it and can still be used, or by a view, a cache or an iterator of it, so it can be neither replaced nor "
            + "altered: let go of that (del rows, rows.unpersist(), DROP VIEW), or read and write in one statement (INSERT OVERWRITE "
            + "... SELECT), or in one transaction (session.transaction(), CALL system.begin()).");
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new AcidException("INTERRUPTED", "Interrupted while waiting for the end of this session's own reads", error);
        }
    }
}
