package transactionmetastore.spark.write;

import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation.Command;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructField;
import transactionmetastore.spark.files.Messages;
import transactionmetastore.spark.internals.ActiveSession;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.table.TableDefinition;
import transactionmetastore.spark.table.TableShape;
import transactionmetastore.spark.txn.AcidTransaction;
import transactionmetastore.spark.txn.TransactionalTable;
import transactionmetastore.spark.txn.WriteKind;
/** The entry points of a table's writes. */
public final class AcidWrites {
    private AcidWrites() {}

    public static WriteBuilder newWriteBuilder(TransactionalTable table, LogicalWriteInfo info) {
        return new AcidWriteBuilder(table, shape(table), null, info);
    }

    public static RowLevelOperationBuilder newRowLevelOperationBuilder(TransactionalTable table, RowLevelOperationInfo info) {
        requireRowIds(table, info.command().name());
        TableShape shape = shape(table);
        AcidTransaction writer = table.writer();
        if (writer == null) {  // EXPLAIN writes nothing
            TransactionalTable read = table.in(AcidTransaction.reader(table.planner(), ""));
            return () -> new RowChanges(read, shape, info.command());
        }
        for (WriteKind kind : kinds(info.command())) writer.write(table.fullName(), kind, null);
        return () -> new RowChanges(table, shape, info.command());
    }

    /**
     * Removes all rows of a table, and of all its partitions. Outside a block this is a transaction of its own, since Spark
     * begins none.
     */
    public static void truncate(TransactionalTable table) {
        truncate(table, Overwriting.EVERYTHING);
    }

    /** Removes all rows of some existing partitions. */
    public static void truncate(TransactionalTable table, List<String> keys) {
        truncate(table, Overwriting.of(keys));
    }

    private static void truncate(TransactionalTable table, Overwriting emptied) {
        TableShape shape = shape(table);
        AcidTransaction transaction = table.block() == null
            ? AcidTransaction.writer(table.planner(), "TRUNCATE TABLE " + table.fullName()) : table.block().statement(false);
        try {
            transaction.write(table.fullName(), WriteKind.INSERT_OVERWRITE, null);
            TransactionalTable target = table.in(transaction);
            if (AcidTransaction.isCounting()) AcidTransaction.changed(rows(target, transaction, emptied));
            empty(target, shape, emptied);
            transaction.commit();
        } finally {
            transaction.close();
        }
    }

    /** Removes all rows of a table, in the table's transaction. */
    public static void empty(TransactionalTable target) {
        empty(target, shape(target), Overwriting.EVERYTHING);
    }

    private static void empty(TransactionalTable target, TableShape shape, Overwriting emptied) {
        AcidWrite write = new AcidWrite(target, shape, null, emptied, null);
        write.begin(0);
        write.commit(new WriterCommitMessage[0]);
    }

    /** Returns the number of rows in the emptied parts, in the same transaction. */
    private static long rows(TransactionalTable table, AcidTransaction transaction, Overwriting emptied) {
        transaction.snapshot(table.fullName());
        Dataset<Row> rows = ActiveSession.rows(table);
        if (emptied.isWhole()) return rows.count();
        Column any = functions.lit(false);
        for (String texts : emptied.emptied()) {
            Column all = functions.lit(true);
            List<?> values = Messages.list(texts);
            StructField[] keys = table.definition().partitionType().fields();
            for (int at = 0; at < keys.length; ++at) {
                Column key = functions.col("`" + keys[at].name() + "`"), value = functions.lit(values.get(at));
                all = all.and(values.get(at) == null ? key.isNull() : key.equalTo(value.cast(keys[at].dataType())));
            }
            any = any.or(all);
        }
        return rows.where(any).count();
    }

    private static List<WriteKind> kinds(Command command) {
        return switch (command) {
            case UPDATE -> List.of(WriteKind.UPDATE);
            case DELETE -> List.of(WriteKind.DELETE);
            case MERGE -> List.of(WriteKind.UPDATE, WriteKind.DELETE, WriteKind.MERGE_INSERT);
        };
    }

    /** Throws AcidException for a table whose rows have no ids. "command": the statement that would change them. */
    public static void requireRowIds(TransactionalTable table, String command) {
        if (table.definition().isFullAcid()) return;
        throw new AcidException("InvalidOperationError", command + " needs a full ACID table, and " + table.fullName() + " is insert-only: "
            + "its rows have no ids. INSERT adds rows, INSERT OVERWRITE and TRUNCATE replace them.");
    }

    /**
     * Returns the table in the form that writers need. Throws AcidException for a column that Spark would store as another
     * type.
     */
    private static TableShape shape(TransactionalTable table) {
        TableDefinition definition = table.definition();
        if (definition.rowType().json().contains("\"timestamp_ntz\"")) {
            throw new AcidException("InvalidOperationError",
                "Spark would store a timestamp_ntz column as a bigint: unset spark.sql.timestampType");
        }
        return TableShape.of(definition);
    }
}
