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
 * A transactional table in a statement: its definition, and the transaction in which it is read or written.
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
     * Creates a table. "transaction": null until a statement is known; "asOf": null for the transaction's snapshot;
     * "block": the session's open block, or null.
     */
    AcidTable(
            String catalog, PlannerClient planner, TableDefinition definition, AsOf asOf, Block block,
            AcidTransaction transaction) {
        this(catalog, planner, definition, asOf, block, transaction, null);
    }

    /** Creates the table "replaced" with its new definition, in the statement that replaces it. */
    AcidTable(AcidTable replaced, TableDefinition definition, AcidTransaction transaction) {
        this(replaced.catalog, replaced.planner, definition, null, null, transaction);
    }

    /** Creates a table. "pinned": the write ids that a frame reads, in Hive's text form; null for those of the transaction. */
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

    /** Returns the same table in another statement. */
    public AcidTable in(AcidTransaction other) {
        other.read(fullName());
        return new AcidTable(catalog, planner, definition, asOf, null, other, pinned);
    }

    /** Returns the same table with fixed write ids, whatever statements use it. */
    public AcidTable pinned(String writeIds) {
        return new AcidTable(catalog, planner, definition, asOf, null, null, writeIds);
    }

    /** Returns the write ids that every read of this table uses; null for those of the transaction. */
    public String pinned() {
        return pinned;
    }

    /**
     * Returns the table with the declared types of its columns, for statements that show or alter columns. "isAltered": all
     * columns count as NOT NULL, since Spark refuses SET NOT NULL on a nullable column even if it has no NULL.
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

    /** Returns true if any write replaces all rows and the definition. */
    public boolean isReplaced() {
        return false;
    }

    /** Returns "db.table", as the metastore names the table. */
    public String fullName() {
        return definition.name();
    }

    /** Returns the point of the past that is read; null for the present. */
    public AsOf asOf() {
        return asOf;
    }

    /** Returns the table's block; null outside a block. */
    public Block block() {
        return block == null || block.hasEnded() ? null : block;
    }

    /** Refuses inside a block an operation that takes effect at once. "what": the beginning of the error's sentence. */
    void requireNoBlock(String what) {
        if (block() != null) throw SessionBlock.atOnce(what);
    }

    /**
     * Returns the transaction in which a statement writes this table; null where Spark has begun none, as for EXPLAIN. In a
     * Spark without transactions the table gets its own, which also reads the other tables of the statement. In a block the
     * table gets a part of the block's transaction.
     */
    public synchronized AcidTransaction writer() {
        boolean isBegun = begun != null && !begun.hasEnded();
        if (!isBegun && !AcidCatalog.SPARK_BEGINS_TRANSACTIONS) {
            begun = block() == null ? AcidTransaction.committingItself(planner, "") : block.statement(true);
            begun.read(fullName());
        }
        if (begun == null || begun.hasEnded()) return null;
        transaction = begun;  // a subquery analysed earlier may have given the table a reader
        return begun;
    }

    /** Returns true if the table is in a statement that writes. */
    public synchronized boolean isInWriter() {
        return transaction != null && transaction.mayWrite();
    }

    /**
     * Returns true if each query reads the table in a transaction of its own: the table is neither in a statement that
     * writes nor in a block.
     */
    public synchronized boolean isReadByQueries() {
        return block() == null && (transaction == null || transaction.isReader() || transaction.hasEnded());
    }

    /** Puts this table into a statement. A read that has begun in a block, or in a statement that writes, stays there. */
    public synchronized void enter(AcidTransaction statement) {
        boolean stays = transaction != null && !transaction.isReader() && !transaction.hasEnded() && transaction.hasBegun();
        if (!stays) transaction = statement;
        transaction.read(fullName());
    }

    /** Returns true if this table is in a statement; DESCRIBE needs none. */
    public synchronized boolean isInStatement() {
        return transaction != null;
    }

    /** Returns the transaction of the statement that uses this table. */
    public synchronized AcidTransaction transaction() {
        if (transaction == null) {
            throw new AcidException("NO_EXTENSION", "The table " + name() + " is in no transaction, because the session lacks "
                + "an extension: set spark.sql.extensions=" + AcidExtensions.class.getName() + ".");
        }
        if (transaction.hasEnded()) {  // a frame may be read after its own write has ended
            transaction = block() == null ? AcidTransaction.reader(planner, "") : block.reading();
            transaction.read(fullName());
        }
        return transaction;
    }

    @Override
    public String name() {
        return catalog + "." + fullName();
    }

    /** Returns the columns in the files, followed by the partition keys. */
    public StructType type() {
        StructType all = definition.rowType();
        for (var key : definition.partitionType().fields()) all = all.add(key);
        return all;
    }

    @Override
    public Column[] columns() {
        return definition.allColumns();
    }

    /** Returns the schema. Spark 4.0 reads the columns only here. */
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

    /** Returns false for a column that is only NULL: it has no type yet. */
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
        return false;  // the column is a partition key
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

    /** Compares without the statement, so that Spark uses a cached table. Tables of different blocks are never equal. */
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
