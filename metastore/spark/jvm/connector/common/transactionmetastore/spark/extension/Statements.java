package transactionmetastore.spark.extension;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import transactionmetastore.spark.txn.AcidTransaction;

/** For programs that hold a session: what its statements are to Spark's parser, and how many rows they change. */
public final class Statements {
    /** "query", "change" (UPDATE, DELETE, MERGE) or "other". */
    public String kind(SparkSession session, String text) throws ParseException {
        LogicalPlan plan = parsed(session, text), inner = SeveralInserts.inner(plan);
        if (inner instanceof UpdateTable || inner instanceof DeleteFromTable || inner instanceof MergeIntoTable) return "change";
        return plan.exists(node -> node instanceof Command || node instanceof ParsedStatement) ? "other" : "query";
    }

    /** From now on count the rows that this thread's statements change. */
    public void count() {
        AcidTransaction.count();
    }

    /** How many rows were changed since count(): null where no statement has written a transactional table. */
    public Long counted() {
        return AcidTransaction.counted();
    }

    private static LogicalPlan parsed(SparkSession session, String text) throws ParseException {
        return ((org.apache.spark.sql.classic.SparkSession) session).sessionState().sqlParser().parsePlan(text);
    }
}
