package transactionmetastore.spark.extension;

import java.util.function.Supplier;
import org.apache.spark.sql.SparkSession;
import transactionmetastore.spark.catalog.AcidCatalogBase;
import transactionmetastore.spark.txn.Block;

/** Access to a session's block, for programs that hold the session. Its own SQL joins the block. */
public final class SessionBlocks {
    /** Returns the block that the session has open; null outside a block. */
    public Block open(SparkSession session) {
        AcidCatalogBase ours = ours(session);
        return ours == null ? null : ours.block();
    }

    /** Returns the session's catalog; null if it is not ours. */
    static AcidCatalogBase ours(SparkSession session) {
        var classic = (org.apache.spark.sql.classic.SparkSession) session;
        return in(session, () -> classic.sessionState().catalogManager().v2SessionCatalog()) instanceof AcidCatalogBase ours ? ours : null;
    }

    /** Runs an action with this session active: Spark takes settings from the thread's session, whichever session is asked. */
    static <T> T in(SparkSession session, Supplier<T> action) {
        return ((org.apache.spark.sql.classic.SparkSession) session).withActive(action::get);
    }
}
