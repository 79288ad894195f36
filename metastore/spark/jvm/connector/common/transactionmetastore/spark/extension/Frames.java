package transactionmetastore.spark.extension;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Function1;
import scala.Option;
import scala.runtime.AbstractPartialFunction;
import transactionmetastore.spark.catalog.AcidTable;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.txn.Block;

/** Builder of frames that keep showing the rows of the moment at which they are made, for programs that hold a session. */
public final class Frames {
    /** Opens a transaction to read in, in the metastore of the session's catalog. */
    public Block read(org.apache.spark.sql.SparkSession session) {
        return Block.ofFrames(SessionBlocks.in(session, () -> SessionBlocks.ours(session).planner()));
    }

    /** Returns the rows of a frame of any session, as a frame of this one. */
    public Dataset<?> of(org.apache.spark.sql.SparkSession session, Dataset<?> rows) {
        return rows.sparkSession() == session ? rows : Dataset$.MODULE$.ofRows((SparkSession) session, rows.queryExecution().analyzed());
    }

    /** Returns a frame of the same rows in the snapshot of "read". Tables that the frame has pinned before stay pinned. */
    public Dataset<?> pinned(Dataset<?> rows, Block read) {
        LogicalPlan plan = rows.queryExecution().analyzed();
        Set<String> names = new LinkedHashSet<>();
        for (AcidTable table : StatementRule.tables(plan)) {
            if (table.pinned() != null) continue;
            if (table.planner() != read.planner()) throw new AcidException("UNSUPPORTED", table.name()
                + " is of another metastore than this session's frames: read it by spark.sql.");
            if (!table.isReadByQueries()) throw new AcidException("InvalidOperationError", "A frame of " + table.name()
                + " in an open transaction cannot keep a snapshot: it ends with the transaction.");
            names.add(table.fullName());
        }
        if (names.isEmpty()) return rows;
        SessionBlocks.in(rows.sparkSession(), () -> {
            read.lock(List.copyOf(names));
            for (String name : names) read.writeIds(name);
            return null;
        });
        LogicalPlan pinned = plan.transformWithSubqueries(new Pinning(read));
        pinned.setAnalyzed();  // no new analysis: only the snapshots of the tables differ
        return Dataset$.MODULE$.ofRows(rows.sparkSession(), pinned);
    }

    /** A function that maps each node of a plan to itself or to its replacement. */
    abstract static class EachNode extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
        abstract LogicalPlan of(LogicalPlan node);

        @Override
        public boolean isDefinedAt(LogicalPlan node) {
            return true;
        }

        @Override
        @SuppressWarnings("unchecked")
        public <A extends LogicalPlan, B> B applyOrElse(A node, Function1<A, B> otherwise) {
            LogicalPlan other = of(node);
            return other == node ? otherwise.apply(node) : (B) other;
        }
    }

    private static AcidTable table(LogicalPlan node) {
        return node instanceof DataSourceV2Relation relation && relation.table() instanceof AcidTable table ? table : null;
    }

    private static final class Pinning extends EachNode {
        private final Block read;

        Pinning(Block read) {
            this.read = read;
        }

        /** Returns the relation without its catalog: Spark would load a table of a catalog again, for each statement. */
        @Override
        LogicalPlan of(LogicalPlan node) {
            AcidTable table = table(node);
            if (table == null || table.pinned() != null) return node;
            DataSourceV2Relation made = (DataSourceV2Relation) node;
            for (int place = 0; place < made.productArity(); ++place) {
                switch (made.productElementName(place)) {
                    case "table" -> made = Nodes.with(made, place, table.pinned(read.writeIds(table.fullName())));
                    case "catalog", "identifier" -> made = Nodes.with(made, place, Option.empty());
                    default -> { }
                }
            }
            return made;
        }
    }
}
