package transactionmetastore.spark.txn;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;
import transactionmetastore.spark.planner.PlannerClient;

/**
 * The read transaction of frames: what they read stays what it is at their making, whenever they are run.
 *
 * Rule: it is open as long as anything can read in it, so that the Cleaner leaves the files. Whatever reads refers to this object: the
 * tables of a plan, the files of a relation, or, of an RDD that can refer to nothing, what the garbage collector runs after it.
 */
public final class KeptRead {
    private final MetastoreTxn txn;
    private final AcidTransaction reading;

    private KeptRead(MetastoreTxn txn) {
        this.txn = txn;
        this.reading = new AcidTransaction(null, txn, false);
    }

    /** What a program has made in a session, and may end all at once. */
    public static final class Owner {
        private final String session;
        private final WeakReference<SparkContext> context;
        private final List<WeakReference<KeptRead>> made = new ArrayList<>();

        public Owner(SparkSession session) {
            this.session = session.sessionUUID();
            this.context = new WeakReference<>(session.sparkContext());
        }

        /** "statement": as far as it is known, for the list of open transactions. "ofBlock": whether it is of several frames. */
        public synchronized KeptRead read(PlannerClient planner, String statement, boolean ofBlock) {
            KeptRead read = new KeptRead(new MetastoreTxn(planner, Reader.ofFrames(session), statement, ofBlock));
            made.removeIf(other -> other.get() == null);
            made.add(new WeakReference<>(read));
            Looks.whileAnythingIsKept(context);
            return read;
        }

        /** Nothing protects the files any more. What has not read yet still reads what it would have. */
        public synchronized void close() {
            for (WeakReference<KeptRead> each : made) {
                KeptRead read = each.get();
                if (read != null) read.txn.letGo();
            }
        }
    }

    /** Its tables are read in this transaction. */
    public AcidTransaction reading() {
        return reading;
    }

    /** "reader", which cannot refer to this, reads in it as long as it is there. */
    public void isHeldBy(Object reader) {
        MetastoreTxn.CLEANER.register(reader, new Holder(this));
    }

    private record Holder(KeptRead read) implements Runnable {
        @Override
        public void run() {
            // it has referred to the transaction until now
        }
    }

    /** What the snapshot has of some tables ("db.table"): their locks first. */
    public void take(List<String> tables) {
        for (String table : tables) txn.read(table);
        for (String table : tables) txn.snapshot(table);
    }

    /** The read failed: nothing will read in it. */
    public void end() {
        txn.letGo();
    }

    // -- for a program's own reads beside Spark's: what Block has too ---------------------------------------------------

    public long id() {
        return txn.id();
    }

    /** Take the locks of a statement that reads tables. */
    public void lock(List<String> reads) {
        for (String table : reads) txn.read(table);
        txn.lock();
    }

    /** The snapshot's transactions, as Hive writes them. */
    public String txns() {
        return txn.snapshot(null).txns();
    }

    /** What the snapshot has of a table, as Hive writes it. */
    public String writeIds(String table) {
        return txn.snapshot(table).writeIds().get(table);
    }

    /** It has written nothing. */
    public Long ownWriteId(String table) {
        return null;
    }
}
