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

/**
 * Access to a session's statements for programs: the parser's kind of a statement, and the number of rows that statements
 * change.
 */
public final class Statements {
    /** Returns "query", "change" (UPDATE, DELETE, MERGE) or "other". */
    public String kind(SparkSession session, String text) throws ParseException {
        LogicalPlan plan = parsed(session, text), inner = SeveralInserts.inner(plan);
        if (inner instanceof UpdateTable || inner instanceof DeleteFromTable || inner instanceof MergeIntoTable) return "change";
        return plan.exists(node -> node instanceof Command || node instanceof ParsedStatement) ? "other" : "query";
    }

    /** Starts to count the rows that this thread's statements change. */
    public void count() {
        AcidTransaction.count();
    }

    /** Returns the number of rows changed since count(); null if no statement has written a transactional table. */
    public Long counted() {
        return AcidTransaction.counted();
    }

    private static LogicalPlan parsed(SparkSession session, String text) throws ParseException {
        return ((org.apache.spark.sql.classic.SparkSession) session).sessionState().sqlParser().parsePlan(text);
    }
}
