package transactionmetastore.spark.extension;

import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedNamespace;
import org.apache.spark.sql.catalyst.plans.logical.DropNamespace;
import org.apache.spark.sql.catalyst.plans.logical.DropTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import transactionmetastore.spark.internals.ResolvedName;

/** The rule for DROP of transactional tables, and of databases that hold them: the catalog drops them. */
record DroppedNames(CatalogNames names) {
    LogicalPlan table(DropTable drop) {
        CatalogNames.Found table = drop.child() instanceof UnresolvedIdentifier name ? names.foundBehindViews(name.nameParts()) : null;
        if (table == null) return drop;
        return drop.withNewChildInternal(ResolvedName.of(table.catalog().underAnotherName(), table.ident(), drop));
    }

    LogicalPlan database(DropNamespace drop) {
        if (!drop.cascade() || !(drop.namespace() instanceof UnresolvedNamespace name)) return drop;
        CatalogNames.DatabaseName db = names.database(name.multipartIdentifier());
        return db == null ? drop : drop.withNewChildInternal(new ResolvedNamespace(db.catalog().underAnotherName(),
            db.parts(), scala.collection.immutable.Map$.MODULE$.empty()));
    }
}
