package transactionmetastore.spark.write;

import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.read.AcidScanBuilder;
import transactionmetastore.spark.table.RowId;
import transactionmetastore.spark.table.TableShape;
import transactionmetastore.spark.txn.TransactionalTable;

/** The row-level operations UPDATE, DELETE and MERGE: rows are identified by their ids within their partition. */
public final class RowChanges implements SupportsDelta {
    private final TransactionalTable table;
    private final TableShape shape;
    private final Command command;

    RowChanges(TransactionalTable table, TableShape shape, Command command) {
        this.table = table;
        this.shape = shape;
        this.command = command;
    }

    @Override
    public Command command() {
        return command;
    }

    public TableShape shape() {
        return shape;
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        AcidScanBuilder scan = new AcidScanBuilder(table, options);
        return command == Command.DELETE ? scan : scan.moving();
    }

    @Override
    public NamedReference[] rowId() {
        return Stream.of(RowId.WRITE_ID, RowId.BUCKET, RowId.ROW).map(id -> Expressions.column(id.column()))
            .toArray(NamedReference[]::new);
    }

    @Override
    public NamedReference[] requiredMetadataAttributes() {
        if (shape.keys().length() == 0) return new NamedReference[0];
        return new NamedReference[] {Expressions.column(RowId.PARTITION.column())};
    }

    @Override
    public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        return new AcidWriteBuilder(table, shape, command, info);
    }

    /** Returns the refusal to assign a partition column. */
    public static AcidException partitionColumn(TableShape table, String column) {
        return new AcidException("InvalidOperationError", "Partition column " + column + " of " + table.name()
            + " cannot be updated: delete the row and insert it into the other partition.");
    }

    /** Returns the refusal to assign bucketing columns. */
    public static AcidException bucketingColumns(TableShape table, List<String> columns) {
        return new AcidException("InvalidOperationError", (columns.size() == 1 ? "Bucketing column " : "Bucketing columns ")
            + String.join(", ", columns) + " of " + table.name()
            + " cannot be updated: delete the row and insert the new one.");
    }
}
