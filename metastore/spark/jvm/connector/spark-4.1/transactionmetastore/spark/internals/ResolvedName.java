package transactionmetastore.spark.internals;

import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;

/** A name of which it is known in which catalog it is. */
public final class ResolvedName {
    private ResolvedName() {}

    /** "before": the statement that has the name. */
    public static ResolvedIdentifier of(CatalogPlugin catalog, Identifier name, LogicalPlan before) {
        return new ResolvedIdentifier(catalog, name, before.output());
    }
}
