package transactionmetastore.spark.catalog;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import scala.Function1;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;
import transactionmetastore.spark.read.ReadsEnd;
import transactionmetastore.spark.write.AssignedColumns;

/** What a session needs besides the catalog, in spark.sql.extensions. */
public final class AcidExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
    @Override
    public BoxedUnit apply(SparkSessionExtensions session) {
        session.injectHintResolutionRule(new AbstractFunction1<>() {
            @Override
            public Rule<LogicalPlan> apply(SparkSession spark) {
                return new RoutingRule(spark);
            }
        });
        session.injectPostHocResolutionRule(new AbstractFunction1<>() {
            @Override
            public Rule<LogicalPlan> apply(SparkSession spark) {
                ReadsEnd.watch(spark.sparkContext());
                return new StatementRule();
            }
        });
        session.injectCheckRule(new AbstractFunction1<>() {
            @Override
            public Function1<LogicalPlan, BoxedUnit> apply(SparkSession spark) {
                return new AssignedColumns();
            }
        });
        return BoxedUnit.UNIT;
    }
}
