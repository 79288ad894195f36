package transactionmetastore.spark.extension;

import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.KnownNotNull;
import org.apache.spark.sql.catalyst.expressions.KnownNullable;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.util.V2ExpressionBuilder;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import scala.Function1;
import scala.runtime.AbstractFunction1;

/**
 * A rule that hides operands of AND, OR and NOT that Spark cannot translate for a data source: a NULL, a CAST to BOOLEAN.
 *
 * Inside another function, such as CASE or <=>, Spark asserts that each operand became a Predicate, and fails. What it can
 * translate differs between versions, so the rule asks Spark, and wraps every other operand in a mark that Spark does not
 * know. Spark then evaluates this condition itself, like any that it cannot translate. ANDs, ORs and NOTs at the top of a
 * filter need no mark: Spark translates them without an assertion.
 */
final class HiddenOperandsRule extends Rule<LogicalPlan> {
    private static final Function1<Expression, Expression> OF_FILTER = new AbstractFunction1<>() {
        @Override
        public Expression apply(Expression condition) {
            return isConnective(condition) ? condition.mapChildren(this) : hidden(condition);
        }
    };
    private static final Function1<Expression, Expression> OF_OTHERS = new AbstractFunction1<>() {
        @Override
        public Expression apply(Expression expression) {
            return hidden(expression);
        }
    };
    private static final Function1<Expression, Expression> OF_OPERANDS = new AbstractFunction1<>() {
        @Override
        public Expression apply(Expression operand) {
            if (!isNoPredicate(operand)) return operand;
            return operand.nullable() ? new KnownNullable(operand) : new KnownNotNull(operand);
        }
    };

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        return plan.transformUp(new Frames.EachNode() {
            @Override
            LogicalPlan of(LogicalPlan node) {
                if (node instanceof OverwriteByExpression write && StatementRule.table((LogicalPlan) write.table()) != null)
                    return node.mapExpressions(OF_FILTER);
                boolean isSaid = node instanceof Filter || node instanceof Project || node instanceof Aggregate || node instanceof Sort;
                if (!isSaid || !isOverOurs(node)) return node;
                return node.mapExpressions(node instanceof Filter ? OF_FILTER : OF_OTHERS);
            }
        });
    }

    private static boolean isOverOurs(LogicalPlan node) {
        LogicalPlan below = node;
        while (below.children().size() == 1) below = below.children().head();
        return StatementRule.table(below) != null;
    }

    /**
     * Returns the expression with its operands hidden where needed. The innermost come first, since the outer ones depend
     * on them.
     */
    private static Expression hidden(Expression expression) {
        Expression inside = expression.mapChildren(OF_OTHERS);
        return isConnective(inside) ? inside.mapChildren(OF_OPERANDS) : inside;
    }

    private static boolean isConnective(Expression part) {
        return part instanceof And || part instanceof Or || part instanceof Not;
    }

    /**
     * Returns true if Spark makes no Predicate of this operand. A connective always becomes one, unless its value is known
     * already.
     */
    private static boolean isNoPredicate(Expression operand) {
        if (isConnective(operand) && !operand.foldable()) return false;
        var made = new V2ExpressionBuilder(operand, true).build();
        return made.isDefined() && !(made.get() instanceof Predicate);
    }
}
