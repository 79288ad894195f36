package transactionmetastore.spark.catalog;

import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.TransactionalCatalogPlugin;
import org.apache.spark.sql.connector.catalog.transactions.Transaction;
import org.apache.spark.sql.connector.catalog.transactions.TransactionInfo;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import transactionmetastore.spark.txn.AcidTransaction;
import transactionmetastore.spark.txn.Block;

/** The catalog for a Spark with transactions: each statement that writes runs in a transaction of the metastore. */
public final class AcidCatalog extends ConstrainedCatalog implements TransactionalCatalogPlugin {
    static final boolean SPARK_BEGINS_TRANSACTIONS = true;

    @Override
    AcidCatalogBase newCatalog() {
        return new AcidCatalog();
    }

    /**
     * Returns a transaction that is not open yet: Spark begins one when it knows only a name, and drops it for a table of
     * its own.
     */
    @Override
    public Transaction beginTransaction(TransactionInfo info) {
        Block block = block();
        AcidTransaction transaction = block == null ? AcidTransaction.writer(planner(), info.id()) : block.statement(false);
        return new StatementTransaction(transaction, inside(transaction));
    }

    @Override
    public Table createTableLike(Identifier ident, TableInfo info, Table source)
            throws TableAlreadyExistsException, NoSuchNamespaceException {
        if (source instanceof AcidTable table) return createLike(ident, table, info.properties());
        return super.createTableLike(ident, info, source);
    }

    @Override
    public Changelog loadChangelog(Identifier ident, ChangelogContext context, CaseInsensitiveStringMap options)
            throws NoSuchTableException {
        AcidTable table = acidTable(ident, null);
        return table == null ? super.loadChangelog(ident, context, options) : AcidChangelog.of(table, context);
    }

    private record StatementTransaction(AcidTransaction transaction, CatalogPlugin catalog) implements Transaction {
        @Override
        public void commit() {
            transaction.commit();
        }

        @Override
        public void abort() {
            transaction.close();
        }

        @Override
        public boolean registerScans(Scan[] scans) {
            return false;
        }

        @Override
        public void close() {
            transaction.close();
        }
    }
}
