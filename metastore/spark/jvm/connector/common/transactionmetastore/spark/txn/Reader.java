package transactionmetastore.spark.txn;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** Who reads in a transaction, and what. It refers to nothing that could read. */
final class Reader {
    final String session;
    /** Whether the transaction is that of frames, and not only of what runs: then it ends when nothing can read any more. */
    final boolean isKept;
    /** The tables that it has locked ("db.table"). */
    final Set<String> tables = ConcurrentHashMap.newKeySet();
    /** How many executions read. */
    final AtomicInteger running = new AtomicInteger();

    private Reader(String session, boolean isKept) {
        this.session = session;
        this.isKept = isKept;
    }

    static Reader ofExecutions(String session) {
        return new Reader(session, false);
    }

    static Reader ofFrames(String session) {
        return new Reader(session, true);
    }

    /** Whether it may go on for as long as its session lives: nothing runs that would end it. */
    boolean isIdle() {
        return isKept || running.get() == 0;
    }
}
