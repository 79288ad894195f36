package transactionmetastore.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import transactionmetastore.spark.table.TableDefinition;
import transactionmetastore.spark.txn.AcidTransaction;
import transactionmetastore.spark.txn.WriteKind;
import transactionmetastore.spark.write.AcidWrites;

/**
 * A table during its replacement by a statement.
 *
 * Rows that are written to it replace all rows, in a transaction of its own; the commit also changes the definition. Until
 * then nobody else reads or writes the table.
 */
final class Replacement extends AcidTable implements StagedTable {
    private final AcidTransaction transaction;
    private boolean isWritten;

    private Replacement(AcidTable replaced, TableDefinition after, AcidTransaction transaction) {
        super(replaced, after, transaction);
        this.transaction = transaction;
    }

    /**
     * Creates a replacement. "definition": in the planner's form; without a format if the statement names none. Throws
     * AcidException for an invalid one.
     */
    static Replacement of(AcidTable replaced, Map<String, Object> definition, Map<String, String> properties) {
        replaced.requireNoBlock("The table " + replaced.fullName() + " is replaced");
        if (!properties.containsKey(AcidCatalogBase.FORMAT)) definition.remove("format");
        JsonNode answer = replaced.planner().call("replacement", definition);
        TableDefinition after = TableDefinition.of(replaced.definition().db(), replaced.definition().table(), answer);
        AcidTransaction transaction = AcidTransaction.writer(replaced.planner(), "REPLACE TABLE " + replaced.fullName());
        transaction.write(replaced.fullName(), WriteKind.DDL_EXCLUSIVE, null);
        transaction.write(replaced.fullName(), WriteKind.INSERT_OVERWRITE, null);
        transaction.replaces(definition);
        return new Replacement(replaced, after, transaction);
    }

    @Override
    public boolean isReplaced() {
        return true;
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        isWritten = true;
        return super.newWriteBuilder(info);
    }

    @Override
    public void commitStagedChanges() {
        try {
            if (!isWritten) AcidWrites.empty(this);
            transaction.commit();
        } finally {
            transaction.close();
        }
    }

    @Override
    public void abortStagedChanges() {
        transaction.close();
    }

    /** Resolves the conflict of both interfaces, which declare this method in newer Sparks. */
    public CustomTaskMetric[] reportDriverMetrics() {
        return new CustomTaskMetric[0];
    }
}
