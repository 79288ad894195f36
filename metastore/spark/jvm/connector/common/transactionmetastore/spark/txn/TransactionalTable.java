package transactionmetastore.spark.txn;

import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.types.StructType;
import transactionmetastore.spark.planner.PlannerClient;
import transactionmetastore.spark.table.AsOf;
import transactionmetastore.spark.table.TableDefinition;

/** A transactional table in a statement, as those that read and write it see it: catalog.AcidTable. */
public interface TransactionalTable extends Table {
    PlannerClient planner();

    TableDefinition definition();

    /** "db.table", as the metastore names it. */
    String fullName();

    /** The columns that files hold, and then the partition keys. */
    StructType type();

    /** A point of the past, or null. */
    AsOf asOf();

    /** The block that it is in; null outside one. */
    Block block();

    /** Whether whatever is written replaces all of its rows, and its definition. */
    boolean isReplaced();

    /** Whether this table is in a statement; DESCRIBE needs none. */
    boolean isInStatement();

    /** Whether it is in a statement that writes. */
    boolean isInWriter();

    /** The write ids that are read whenever this is read; null for those of the transaction. */
    String pinned();

    /** The transaction of the statement that this table is in. */
    AcidTransaction transaction();

    /** The transaction in which a statement writes this table; null where Spark has begun none, as for EXPLAIN. */
    AcidTransaction writer();

    /** The same table in another statement. */
    TransactionalTable in(AcidTransaction other);
}
