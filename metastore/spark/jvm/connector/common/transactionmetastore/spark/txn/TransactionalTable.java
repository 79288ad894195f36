package transactionmetastore.spark.txn;

import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.types.StructType;
import transactionmetastore.spark.planner.PlannerClient;
import transactionmetastore.spark.table.AsOf;
import transactionmetastore.spark.table.TableDefinition;

/** A transactional table in a statement, as its readers and writers need it: catalog.AcidTable. */
public interface TransactionalTable extends Table {
    PlannerClient planner();

    TableDefinition definition();

    /** Returns "db.table", as the metastore names the table. */
    String fullName();

    /** Returns the columns in the files, followed by the partition keys. */
    StructType type();

    /** Returns the point of the past that is read; null for the present. */
    AsOf asOf();

    /** Returns the table's block; null outside a block. */
    Block block();

    /** Returns true if any write replaces all rows and the definition. */
    boolean isReplaced();

    /** Returns true if this table is in a statement; DESCRIBE needs none. */
    boolean isInStatement();

    /** Returns true if the table is in a statement that writes. */
    boolean isInWriter();

    /** Returns the write ids that every read of this table uses; null for those of the transaction. */
    String pinned();

    /** Returns the transaction of the statement that uses this table. */
    AcidTransaction transaction();

    /** Returns the transaction in which a statement writes this table; null where Spark has begun none, as for EXPLAIN. */
    AcidTransaction writer();

    /** Returns the same table in another statement. */
    TransactionalTable in(AcidTransaction other);
}
