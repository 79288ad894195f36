package transactionmetastore.spark.extension;

import java.util.function.Supplier;
import org.apache.spark.sql.SparkSession;
import transactionmetastore.spark.catalog.AcidCatalogBase;
import transactionmetastore.spark.txn.Block;

/** For programs that hold a session: its block, which its own SQL joins. */
public final class SessionBlocks {
    /** The block that the session has open; null outside a block. */
    public Block open(SparkSession session) {
        AcidCatalogBase ours = ours(session);
        return ours == null ? null : ours.block();
    }

    /** The session's catalog; null where that is not ours. */
    static AcidCatalogBase ours(SparkSession session) {
        var classic = (org.apache.spark.sql.classic.SparkSession) session;
        return in(session, () -> classic.sessionState().catalogManager().v2SessionCatalog()) instanceof AcidCatalogBase ours ? ours : null;
    }

    /** Spark takes the settings of the thread's session, whichever it is asked for. */
    static <T> T in(SparkSession session, Supplier<T> action) {
        return ((org.apache.spark.sql.classic.SparkSession) session).withActive(action::get);
    }
}
