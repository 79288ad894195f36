package transactionmetastore.spark.write;

import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation.Command;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.WriteBuilder;
import transactionmetastore.spark.internals.ActiveSession;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.table.TableShape;
import transactionmetastore.spark.txn.TransactionalTable;

/** A builder of writes, which collects what a write replaces: see Overwriting. */
public final class AcidWriteBuilder implements DeltaWriteBuilder, SupportsOverwriteV2, SupportsDynamicOverwrite {
    /**
     * The option of a write that replaces by a condition. Spark otherwise makes the same write of an INSERT OVERWRITE of
     * some partitions.
     */
    public static final String BY_CONDITION = "acid.replaces.by.condition";

    private final TransactionalTable target;
    private final TableShape table;
    private final Command command;
    private final LogicalWriteInfo info;
    private Overwriting overwriting;

    AcidWriteBuilder(TransactionalTable target, TableShape table, Command command, LogicalWriteInfo info) {
        this.info = info;
        this.target = target;
        this.table = table;
        this.command = command;
    }

    /**
     * Replaces all rows. In its "static" mode, the default, Spark means all partitions. As in Hive, only those that get
     * rows are replaced, unless the statement has the mode as an option of its own, or a condition that is true for each
     * row.
     */
    @Override
    public WriteBuilder truncate() {
        boolean isWhole = target.isReplaced() || isByCondition() || "static".equalsIgnoreCase(info.options().get("partitionOverwriteMode"));
        overwriting = isWhole ? Overwriting.EVERYTHING : Overwriting.ALL_THAT_GET_ROWS;
        return this;
    }

    @Override
    public WriteBuilder overwriteDynamicPartitions() {
        return truncate();
    }

    /** Accepts any condition: overwrite() refuses unsupported ones with a reason, which Spark would not give. */
    @Override
    public boolean canOverwrite(Predicate[] conditions) {
        return true;
    }

    @Override
    public WriteBuilder overwrite(Predicate[] conditions) {
        overwriting = named(conditions);
        if (overwriting == null) {
            throw new AcidException("InvalidOperationError", "Of " + table.name() + " only partitions can be overwritten that "
                + "are named by their values, as in PARTITION (key = value) or REPLACE WHERE key = value. Other rows are replaced by DELETE and INSERT, "
                + "or by MERGE.");
        }
        return this;
    }

    private Overwriting named(Predicate[] conditions) {
        return Overwriting.of(conditions, table.keys(), ActiveSession.zone(), isByCondition());
    }

    private boolean isByCondition() {
        return info.options().containsKey(BY_CONDITION);
    }

    @Override
    public DeltaWrite build() {
        return new AcidWrite(target, table, command, overwriting, info);
    }
}
