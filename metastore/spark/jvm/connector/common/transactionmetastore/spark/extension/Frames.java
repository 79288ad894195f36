package transactionmetastore.spark.extension;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Function1;
import scala.Option;
import scala.PartialFunction;
import scala.runtime.AbstractPartialFunction;
import transactionmetastore.spark.catalog.AcidTable;
import transactionmetastore.spark.files.HeldSnapshots;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;
import transactionmetastore.spark.txn.KeptRead;
import transactionmetastore.spark.txn.OwnReads;

/** For programs that hold a session: frames whose rows stay what they are when the frame is made. */
public final class Frames {
    /** What makes the reads of a program in a session. */
    public KeptRead.Owner owner(org.apache.spark.sql.SparkSession session) {
        return new KeptRead.Owner((SparkSession) session);
    }

    /** A read transaction in the metastore of the session's catalog. "ofBlock": whether it is of several frames. */
    public KeptRead read(org.apache.spark.sql.SparkSession session, KeptRead.Owner owner, boolean ofBlock) {
        return owner.read(planner(session), "frames", ofBlock);
    }

    private static PlannerClient planner(org.apache.spark.sql.SparkSession session) {
        return SessionBlocks.in(session, () -> SessionBlocks.ours(session).planner());
    }

    /** The rows of a frame of any session, in this one. */
    public Dataset<?> of(org.apache.spark.sql.SparkSession session, Dataset<?> rows) {
        return rows.sparkSession() == session ? rows : Dataset$.MODULE$.ofRows((SparkSession) session, rows.queryExecution().analyzed());
    }

    /** The session needs tables ("db.table") for itself. Throws AcidException: it reads one itself. */
    public void giveWay(org.apache.spark.sql.SparkSession session, List<String> tables) {
        SessionBlocks.in(session, () -> {
            OwnReads.giveWay(planner(session), tables);
            return null;
        });
    }

    /** The same rows, of the snapshot of "read" and held by it. What was kept before stays in its own. */
    public Dataset<?> kept(Dataset<?> rows, KeptRead read) {
        Set<AcidTable> tables = Collections.newSetFromMap(new IdentityHashMap<>());
        transformed(rows.queryExecution().analyzed(), new Noting(tables));
        if (tables.isEmpty()) return rows;
        List<String> names = new ArrayList<>();
        for (AcidTable table : tables) {
            if (table.isKept()) continue;
            if (table.planner() != read.reading().planner()) throw new AcidException("UNSUPPORTED", table.name()
                + " is of another metastore than this session's frames: read it by spark.sql.");
            if (table.isInWriter() || table.block() != null) throw new AcidException("InvalidOperationError", "A frame of " + table.name()
                + " in an open transaction cannot keep a snapshot: it ends with the transaction.");
            names.add(table.fullName());
        }
        if (!names.isEmpty()) SessionBlocks.in(rows.sparkSession(), () -> {
            read.take(names);
            return null;
        });
        return with(rows, new KeepingTables(read));
    }

    /** The same rows of files, which a program has chosen in "read", and held by it. */
    public Dataset<?> held(Dataset<?> rows, KeptRead read) {
        return with(rows, new HoldingFiles(read));
    }

    private static Dataset<?> with(Dataset<?> rows, PartialFunction<LogicalPlan, LogicalPlan> rule) {
        LogicalPlan plan = transformed(rows.queryExecution().analyzed(), rule);
        plan.setAnalyzed();  // as before: only what holds its snapshot has changed
        return Dataset$.MODULE$.ofRows(rows.sparkSession(), plan);
    }

    private static LogicalPlan transformed(LogicalPlan plan, PartialFunction<LogicalPlan, LogicalPlan> rule) {
        return plan.transformWithSubqueries(rule);
    }

    /** What becomes of each node: itself, or another in its place. */
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

    private static final class Noting extends EachNode {
        private final Set<AcidTable> tables;

        Noting(Set<AcidTable> tables) {
            this.tables = tables;
        }

        @Override
        LogicalPlan of(LogicalPlan node) {
            if (table(node) != null) tables.add(table(node));
            return node;
        }
    }

    private static final class HoldingFiles extends EachNode {
        private final KeptRead read;

        HoldingFiles(KeptRead read) {
            this.read = read;
        }

        @Override
        LogicalPlan of(LogicalPlan node) {
            if (node instanceof LogicalRDD rows) read.isHeldBy(rows.rdd());
            return node instanceof LogicalRelation files ? (LogicalPlan) HeldSnapshots.holding(files, read) : node;
        }
    }

    private static final class KeepingTables extends EachNode {
        private final KeptRead read;

        KeepingTables(KeptRead read) {
            this.read = read;
        }

        /** In no catalog: what has a name in a catalog Spark loads again, for each statement. */
        @Override
        LogicalPlan of(LogicalPlan node) {
            AcidTable table = table(node);
            if (table == null || table.isKept()) return node;
            DataSourceV2Relation made = (DataSourceV2Relation) node;
            for (int place = 0; place < made.productArity(); ++place) {
                switch (made.productElementName(place)) {
                    case "table" -> made = Nodes.with(made, place, table.in(read));
                    case "catalog", "identifier" -> made = Nodes.with(made, place, Option.empty());
                    default -> { }
                }
            }
            return made;
        }
    }
}
