package transactionmetastore.spark.procedure;

import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.function.Supplier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;
import transactionmetastore.spark.planner.PlannerClient;
import transactionmetastore.spark.txn.SessionBlock;

/** The procedures CALL system.begin(), commit() and rollback(). They belong to the session; the planner does not have them. */
public record BlockProcedure(String name, String description, Runnable run) implements UnboundProcedure, BoundProcedure {
    public static final List<String> NAMES = List.of("begin", "commit", "rollback");

    /**
     * Returns the procedure of this name; null for any other name. "planner": supplies the planner's client when a block
     * begins.
     */
    public static UnboundProcedure named(Identifier ident, String catalog, SessionBlock block, Supplier<PlannerClient> planner) {
        if (!Procedures.isTheirs(ident.namespace())) return null;
        return switch (ident.name().toLowerCase(Locale.ROOT)) {
            case "begin" -> new BlockProcedure("begin", "Let the session's further statements run in one transaction",
                () -> block.begin(planner.get()));
            case "commit" -> new BlockProcedure("commit", "Commit the session's transaction", () -> block.commit().forEach(table -> refresh(catalog, table)));
            case "rollback" -> new BlockProcedure("rollback", "Undo all that the session's transaction has written", block::rollback);
            default -> null;
        };
    }

    /**
     * Refreshes Spark's caches of a table: they take a table in a block for another one, and so have not noticed the
     * block's changes.
     */
    public static void refresh(String catalog, String table) {
        try {
            SparkSession.active().sql("REFRESH TABLE `" + catalog + "`.`" + table.replace(".", "`.`") + "`");
        } catch (RuntimeException error) {
            // the table has been dropped meanwhile; the commit is done all the same
        }
    }

    @Override
    public BoundProcedure bind(StructType arguments) {
        return this;
    }

    @Override
    public ProcedureParameter[] parameters() {
        return new ProcedureParameter[0];
    }

    @Override
    public boolean isDeterministic() {
        return false;
    }

    @Override
    public Iterator<Scan> call(InternalRow given) {
        run.run();
        return Collections.emptyIterator();
    }
}
