package transactionmetastore.spark.catalog;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import scala.runtime.AbstractFunction0;
import transactionmetastore.spark.txn.Block;

/** For programs that hold a session: its block, which its own SQL joins. */
public final class SessionBlocks {
    /** The block that the session has open; null outside a block. */
    public Block open(SparkSession session) {
        return catalog(session) instanceof AcidCatalogBase ours ? ours.block() : null;
    }

    /** Whether the session's own SQL knows ACID tables. */
    public boolean hasCatalog(SparkSession session) {
        return catalog(session) instanceof AcidCatalogBase;
    }

    /** Spark takes the settings of the thread's session, whichever it is asked for. */
    private static CatalogPlugin catalog(SparkSession session) {
        var classic = (org.apache.spark.sql.classic.SparkSession) session;
        return classic.withActive(new AbstractFunction0<CatalogPlugin>() {
            @Override
            public CatalogPlugin apply() {
                return classic.sessionState().catalogManager().v2SessionCatalog();
            }
        });
    }
}
