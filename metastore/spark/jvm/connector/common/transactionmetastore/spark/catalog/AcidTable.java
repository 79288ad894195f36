package transactionmetastore.spark.catalog;

import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchPartitionException;
import org.apache.spark.sql.catalyst.analysis.PartitionsAlreadyExistException;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsAtomicPartitionManagement;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;
import transactionmetastore.spark.read.AcidScanBuilder;
import transactionmetastore.spark.table.AsOf;
import transactionmetastore.spark.table.RowId;
import transactionmetastore.spark.table.TableDefinition;
import transactionmetastore.spark.txn.AcidTransaction;
import transactionmetastore.spark.txn.Block;
import transactionmetastore.spark.txn.SessionBlock;
import transactionmetastore.spark.txn.TransactionalTable;
import transactionmetastore.spark.write.AcidWrites;

/**
 * A transactional table in a statement: what it is, and the transaction in which it is read or written.
 *
 * Spark keeps the table of an analysed plan, as that of a frame, and uses it in other plans: see StatementRule.
 */
public class AcidTable implements SupportsRead, SupportsWrite, SupportsRowLevelOperations, SupportsMetadataColumns,
        SupportsAtomicPartitionManagement, TruncatableTable, EvolvingTable, TransactionalTable {
    private final String catalog;
    private final PlannerClient planner;
    private final TableDefinition definition;
    private final AsOf asOf;
    private final Block block;
    private final String pinned;
    private AcidTransaction begun;
    private AcidTransaction transaction;

    /**
     * "transaction": null until a statement is known; "asOf": null for what the transaction sees; "block": what its session had open,
     * or null.
     */
    AcidTable(
            String catalog, PlannerClient planner, TableDefinition definition, AsOf asOf, Block block,
            AcidTransaction transaction) {
        this(catalog, planner, definition, asOf, block, transaction, null);
    }

    /** The table "replaced" as it will be, in the statement that replaces it. */
    AcidTable(AcidTable replaced, TableDefinition definition, AcidTransaction transaction) {
        this(replaced.catalog, replaced.planner, definition, null, null, transaction);
    }

    /** "pinned": the write ids that a frame reads, as Hive writes them; null for those of the transaction. */
    private AcidTable(
            String catalog, PlannerClient planner, TableDefinition definition, AsOf asOf, Block block,
            AcidTransaction transaction, String pinned) {
        this.pinned = pinned;
        this.catalog = catalog;
        this.planner = planner;
        this.definition = definition;
        this.asOf = asOf;
        this.block = block;
        this.transaction = transaction;
        this.begun = transaction == null || transaction.isReader() ? null : transaction;
    }

    /** The same table in another statement. */
    public AcidTable in(AcidTransaction other) {
        other.read(fullName());
        return new AcidTable(catalog, planner, definition, asOf, null, other, pinned);
    }

    /** The same table as it is by these write ids, whatever statements it is in. */
    public AcidTable pinned(String writeIds) {
        return new AcidTable(catalog, planner, definition, asOf, null, null, writeIds);
    }

    /** The write ids that are read whenever this is read; null for those of the transaction. */
    public String pinned() {
        return pinned;
    }

    /**
     * The table with the declared types of its columns, for statements that show or alter these. For the latter they take no NULL: Spark
     * refuses SET NOT NULL otherwise, whether there is a NULL or not.
     */
    public AcidTable declared(boolean isAltered) {
        return new AcidTable(catalog, planner, definition, asOf, block, transaction, pinned) {
            @Override
            public Column[] columns() {
                return definition().declaredColumns(!isAltered);
            }
        };
    }

    public PlannerClient planner() {
        return planner;
    }

    public TableDefinition definition() {
        return definition;
    }

    /** Whether whatever is written replaces all of its rows, and its definition. */
    public boolean isReplaced() {
        return false;
    }

    /** "db.table", as the metastore names it. */
    public String fullName() {
        return definition.name();
    }

    /** A point of the past, or null. */
    public AsOf asOf() {
        return asOf;
    }

    /** The block that it is in; null outside one. */
    public Block block() {
        return block == null || block.hasEnded() ? null : block;
    }

    /** Refuse what is done at once, inside a block: "what" is a sentence's beginning. */
    void requireNoBlock(String what) {
        if (block() != null) throw SessionBlock.atOnce(what);
    }

    /**
     * The transaction in which a statement writes this table; null where Spark has begun none, as for EXPLAIN. In a Spark
     * without transactions the table gets its own, which also reads the other tables of the statement. In a block it gets a part of
     * the block's.
     */
    public synchronized AcidTransaction writer() {
        boolean isBegun = begun != null && !begun.hasEnded();
        if (!isBegun && !AcidCatalog.SPARK_BEGINS_TRANSACTIONS) {
            begun = block() == null ? AcidTransaction.committingItself(planner, "") : block.statement(true);
            begun.read(fullName());
        }
        if (begun == null || begun.hasEnded()) return null;
        transaction = begun;  // Spark may have analysed a subquery of this table first, which gave it a reader
        return begun;
    }

    /** Whether it is in a statement that writes. */
    public synchronized boolean isInWriter() {
        return transaction != null && transaction.mayWrite();
    }

    /** Whether each query reads it in a transaction of its own: it is in no statement that writes, and in no block. */
    public synchronized boolean isReadByQueries() {
        return block() == null && (transaction == null || transaction.isReader() || transaction.hasEnded());
    }

    /** Put this table into a statement. A read that has begun in a block or a statement that writes stays there. */
    public synchronized void enter(AcidTransaction statement) {
        boolean stays = transaction != null && !transaction.isReader() && !transaction.hasEnded() && transaction.hasBegun();
        if (!stays) transaction = statement;
        transaction.read(fullName());
    }

    /** Whether this table is in a statement; DESCRIBE needs none. */
    public synchronized boolean isInStatement() {
        return transaction != null;
    }

    /** The transaction of the statement that this table is in. */
    public synchronized AcidTransaction transaction() {
        if (transaction == null) {
            throw new AcidException("NO_EXTENSION", "The table " + name() + " is in no transaction, because the session lacks "
                + "an extension: set spark.sql.extensions=" + AcidExtensions.class.getName() + ".");
        }
        if (transaction.hasEnded()) {  // a frame is read after it was written
            transaction = block() == null ? AcidTransaction.reader(planner, "") : block.reading();
            transaction.read(fullName());
        }
        return transaction;
    }

    @Override
    public String name() {
        return catalog + "." + fullName();
    }

    /** The columns that files hold, and then the partition keys. */
    public StructType type() {
        StructType all = definition.rowType();
        for (var key : definition.partitionType().fields()) all = all.add(key);
        return all;
    }

    @Override
    public Column[] columns() {
        return definition.allColumns();
    }

    /** Spark 4.0 reads the columns from here alone. */
    @Override
    @SuppressWarnings("deprecation")
    public StructType schema() {
        return CatalogV2Util.v2ColumnsToStructType(columns());
    }

    @Override
    public Transform[] partitioning() {
        return definition.partitioning();
    }

    @Override
    public Map<String, String> properties() {
        Map<String, String> shown = new HashMap<>(definition.properties());
        shown.put(TableCatalog.PROP_PROVIDER, "hive");
        shown.put(TableCatalog.PROP_LOCATION, definition.location());
        if (definition.owner() != null) shown.put(TableCatalog.PROP_OWNER, definition.owner());
        if (definition.comment() != null) shown.put(TableCatalog.PROP_COMMENT, definition.comment());
        return shown;
    }

    @Override
    public Set<TableCapability> capabilities() {
        if (asOf != null) return EnumSet.of(TableCapability.BATCH_READ);
        Set<TableCapability> all = EnumSet.of(
            TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.OVERWRITE_DYNAMIC,
            TableCapability.OVERWRITE_BY_FILTER, TableCapability.TRUNCATE, TableCapability.STREAMING_WRITE,
            TableCapability.MICRO_BATCH_READ);
        all.addAll(EVOLVING);
        return all;
    }

    // -- WITH SCHEMA EVOLUTION -----------------------------------------------------------------------------------------

    /** Not what is NULL alone, which has no type yet. */
    @Override
    public boolean mayAdd(String[] names, DataType type) {
        return !type.existsRecursively(inner -> inner instanceof NullType);
    }

    @Override
    public boolean mayWiden(String[] names, DataType type) {
        if (names.length > 1) return false;
        for (TableDefinition.Field field : definition.columns()) {
            if (!field.name().equalsIgnoreCase(names[0])) continue;
            Map<String, Object> change = Map.of("table", fullName(), "column", field.name(), "type", type.catalogString());
            return planner.call("can_widen", change).path("can_widen").asBoolean();
        }
        return false;  // a partition key
    }

    @Override
    public MetadataColumn[] metadataColumns() {
        return definition.isFullAcid() ? RowId.columns() : new MetadataColumn[0];
    }

    @Override
    public AcidScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return new AcidScanBuilder(this, options);
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        return AcidWrites.newWriteBuilder(this, info);
    }

    @Override
    public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
        return AcidWrites.newRowLevelOperationBuilder(this, info);
    }

    @Override
    public boolean truncateTable() {
        AcidWrites.truncate(this);
        return true;
    }

    // -- partitions: see Partitions ------------------------------------------------------------------------------------

    @Override
    public StructType partitionSchema() {
        return definition.partitionType();
    }

    @Override
    public InternalRow[] listPartitionIdentifiers(String[] names, InternalRow values) {
        return new Partitions(this).identifiers(names, values);
    }

    @Override
    public void createPartitions(InternalRow[] values, Map<String, String>[] properties) {
        new Partitions(this).add(values, properties);
    }

    @Override
    public boolean dropPartitions(InternalRow[] values) {
        return new Partitions(this).drop(values, false);
    }

    @Override
    public boolean purgePartitions(InternalRow[] values) {
        return new Partitions(this).drop(values, true);
    }

    @Override
    public boolean purgePartition(InternalRow values) {
        return purgePartitions(new InternalRow[] {values});
    }

    @Override
    public boolean truncatePartition(InternalRow values) throws NoSuchPartitionException {
        return new Partitions(this).truncate(values);
    }

    @Override
    public boolean truncatePartitions(InternalRow[] values) {
        return new Partitions(this).truncate(values);
    }

    @Override
    public boolean renamePartition(InternalRow from, InternalRow to)
            throws NoSuchPartitionException, PartitionsAlreadyExistException {
        return new Partitions(this).rename(from, to);
    }

    @Override
    public Map<String, String> loadPartitionMetadata(InternalRow values) {
        return new Partitions(this).metadata(values);
    }

    @Override
    public void replacePartitionMetadata(InternalRow values, Map<String, String> properties) {
        throw new AcidException("UNSUPPORTED", "Partitions of " + name() + " have no properties of their own.");
    }

    /** Regardless of the statement, so that Spark uses a table that it has cached; but what a block sees is its own. */
    @Override
    public boolean equals(Object other) {
        return other instanceof AcidTable table && table.name().equals(name()) && table.planner == planner && table.block == block
            && Objects.equals(table.pinned, pinned) && table.definition.id().equals(definition.id()) && Objects.equals(table.asOf, asOf);
    }

    @Override
    public int hashCode() {
        return Objects.hash(name(), definition.id(), asOf);
    }

    @Override
    public String toString() {
        return name();
    }
}
