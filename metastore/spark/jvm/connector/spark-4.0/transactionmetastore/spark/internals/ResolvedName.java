package transactionmetastore.spark.internals;

import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;

/** A name that is resolved to its catalog. */
public final class ResolvedName {
    private ResolvedName() {}

    /** Returns the resolved name. "before": the statement that contains the name. */
    public static ResolvedIdentifier of(CatalogPlugin catalog, Identifier name, LogicalPlan before) {
        return new ResolvedIdentifier(catalog, name);
    }
}
