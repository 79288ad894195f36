package transactionmetastore.spark.extension;

import java.util.List;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.DeleteAction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The rule for a MERGE that only inserts. Spark 4.0 cannot resolve one into a table with CHAR or VARCHAR, so the rule adds
 * an action that matches no row.
 */
record InsertingMerge(CatalogNames names) {
    private static final Seq<DeleteAction> NOTHING = CollectionConverters.asScala(
        List.of(new DeleteAction(Option.apply(Literal.create(false, DataTypes.BooleanType))))).toSeq();

    LogicalPlan resolvable(MergeIntoTable merge) {
        StatementRule.tag(merge);
        return isUnresolvable(merge) ? Nodes.with(merge, Nodes.place(merge, "notMatchedBySourceActions"), NOTHING) : merge;
    }

    private boolean isUnresolvable(MergeIntoTable merge) {
        UnresolvedRelation target = AssignedNames.target(merge);
        if (!StatementRule.isOfNewRowsAlone(merge) || target == null || !names.spark().version().startsWith("4.0.")) return false;
        CatalogNames.Found found = names.found(target.multipartIdentifier());
        return found != null && found.table().type().exists(column -> CharVarcharUtils.getRawType(column.metadata()).isDefined());
    }
}
