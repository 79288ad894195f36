package transactionmetastore.spark.read;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.hadoop.mapred.JobConf;
import org.apache.orc.OrcConf;
import org.apache.orc.mapred.OrcInputFormat;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.connector.PredicateUtils;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.CharType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.util.SerializableConfiguration;
import transactionmetastore.spark.files.OrcConditions;
import transactionmetastore.spark.internals.KeyCondition;
import transactionmetastore.spark.internals.SparkInternals;
import transactionmetastore.spark.plain.PlainScan;
import transactionmetastore.spark.plain.PlainStorage;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.stream.AppendedRows;
import transactionmetastore.spark.stream.RangeScan;
import transactionmetastore.spark.table.ChangeRange;
import transactionmetastore.spark.table.PartitionKeys;
import transactionmetastore.spark.table.PlannedRange;
import transactionmetastore.spark.table.TableShape;
import transactionmetastore.spark.txn.AcidTransaction;
import transactionmetastore.spark.txn.Snapshot;
import transactionmetastore.spark.txn.TransactionalTable;

/** A scan of a table in the snapshot of its statement. It calls the planner when Spark first needs sizes or files. */
public final class AcidScan
        implements Scan, RangeScan, SupportsReportStatistics, SupportsRuntimeV2Filtering, SupportsReportPartitioning {
    private static final String GROUPING = "spark.sql.sources.v2.bucketing.enabled";

    private final TransactionalTable table;
    private final StructType wanted;
    private final boolean isCounted, isMoving;
    private final AcidScan planned;
    private final CaseInsensitiveStringMap options;
    private final PlannedRange range;
    private final List<Predicate> ofKeys, ofRows;
    private List<KeyCondition> whileRunning = List.of();
    private final AcidTransaction transaction;
    private ScanPlan plan;
    private List<InternalRow> keys;
    private PlainScan plain;
    private Groups groups;
    private Integer limit;

    /**
     * Creates a scan. "isCounted": whether the planner reads footers for the number of rows; "planned": a scan of the same
     * files, whose plan is used, or null; "isMoving": whether the rows that are read are written again; "options": of a
     * stream; "range": the rows to read, or null for all.
     */
    AcidScan(
            TransactionalTable table, StructType wanted, List<Predicate> ofKeys, List<Predicate> ofRows, boolean isCounted,
            AcidScan planned, boolean isMoving, CaseInsensitiveStringMap options, PlannedRange range) {
        this.options = options;
        this.range = range;
        this.isMoving = isMoving;
        this.isCounted = isCounted;
        this.planned = planned;
        this.table = table;
        this.transaction = table.isInStatement() ? table.transaction() : null;
        this.wanted = wanted;
        this.ofKeys = ofKeys;
        this.ofRows = ofRows;
    }

    /** Returns this scan for a range of write ids alone, in a new snapshot. */
    public AcidScan of(PlannedRange batch) {
        AcidTransaction reader = AcidTransaction.reader(table.planner(), "stream of " + table.fullName());
        return new AcidScan(table.in(reader), wanted, ofKeys, ofRows, false, null, false, options, batch);
    }

    /** Returns a scan of just enough files for so many rows, no matter which. */
    AcidScan limited(int most) {
        limit = most;
        return this;
    }

    public TransactionalTable table() {
        return table;
    }

    /** Keeps the scan's files until "release", even if the statement ends before. */
    public void use() {
        transaction.use();
    }

    public void release() {
        transaction.release();
    }

    /**
     * Returns the plan, for a reader in this thread. The transaction of an older plan, as of EXPLAIN or a cache, may have
     * ended: then a new one locks the table, and keeps the remaining files of the same snapshot.
     */
    private synchronized ScanPlan running() {
        ScanPlan made = plan();
        if (transaction.isReader()) used(this::snapshot);
        return made;
    }

    private synchronized ScanPlan plan() {
        if (plan == null) plan = planned != null ? planned.plan() : used(this::made);
        return plan;
    }

    private <T> T used(Supplier<T> call) {
        if (transaction == null) table.transaction();  // throws an error with the reason
        if (transaction.planner() != table.planner()) throw new AcidException("UNSUPPORTED", table.name()
            + " is of another metastore than the transaction that reads it: read it by a statement of its own.");
        transaction.use();  // a thread that ends another use does not wait for this call
        try {
            ReadsEnd.reads(spark().sparkContext(), transaction);
            return call.get();
        } finally {
            transaction.release();
        }
    }

    private Snapshot snapshot() {
        return transaction.snapshot(table.fullName());
    }

    private ScanPlan made() {
        Snapshot snapshot = snapshot();
        Map<String, Object> arguments = new HashMap<>();
        arguments.put("table", table.fullName());
        arguments.put("txns", snapshot.txns());
        arguments.put("write_ids", table.pinned() != null ? table.pinned() : snapshot.writeIds().get(table.fullName()));
        arguments.put("own_write_id", table.pinned() != null ? null : snapshot.ownWriteIds().get(table.fullName()));
        arguments.put("is_past", table.pinned() != null || snapshot.isPast());
        arguments.put("partitions", PartitionConditions.of(ofKeys, table.definition().partitionType()));
        arguments.put("columns", table.definition().known(List.of(wanted.fieldNames())));
        arguments.put("as_of", table.asOf() == null ? null : table.asOf().argument());
        arguments.put("row_ids", layout().areIdsWanted);
        arguments.put("count", isCounted);
        arguments.put("limit", limit);
        if (range == null && SQLConf.get().cboEnabled()) arguments.put("statistics", ColumnEstimates.named(wanted));
        if (range != null) range.addTo(arguments);
        return planned(arguments);
    }

    /**
     * Asks the planner for a plan. The planner knows only some conditions on keys. If it does not know all, it reads no
     * footers before it is told the partitions; and equal values may have different texts even if it knows all.
     */
    private ScanPlan planned(Map<String, Object> arguments) {
        boolean readsFooters = isCounted || limit != null;
        boolean areKnown = PartitionConditions.areKnown(ofKeys, table.definition().partitionType());
        Map<String, Object> first = new HashMap<>(arguments);
        if (!areKnown) first.keySet().removeAll(List.of("count", "limit"));
        ScanPlan all = called(first);
        List<Boolean> isWanted = isWanted(all);
        if (!readsFooters || areKnown && !isWanted.contains(false)) return all.in(isWanted);
        arguments.put("named", all.names(isWanted));
        return called(arguments);
    }

    private ScanPlan called(Map<String, Object> arguments) {
        return ScanPlan.of(transaction.planner().call(range == null ? "plan" : range.call(), arguments));
    }

    /** Returns for each directory whether its partition meets the conditions on keys. */
    private List<Boolean> isWanted(ScanPlan all) {
        StructType types = table.definition().partitionType();
        List<KeyCondition> conditions = ofKeys.stream().map(condition -> KeyCondition.of(condition, types)).filter(Objects::nonNull).toList();
        if (conditions.isEmpty()) return Collections.nCopies(all.directories().size(), true);
        return valuesOfKeys(all).stream().map(keys -> conditions.stream().allMatch(condition -> condition.holds(keys))).toList();
    }

    /** Returns the scan of an insert-only table's files; null for a full ACID table. */
    private synchronized PlainScan plain() {
        if (plain == null && !table.definition().isFullAcid()) {
            plain = new PlainScan(spark(), table.fullName(), table.definition().rowType(), table.definition().partitionType(), wanted,
                storages());
        }
        return plain;
    }

    private List<PlainStorage> storages() {
        return plan().directories().stream().map(ScanPlan.Directory::storage).toList();
    }

    /** Returns the aggregates of all rows from footers; null if rows have to be read. */
    List<Object[]> rowsOfFooters(FooterValues wanted) {
        return plan().rowCount() == null ? null : wanted.rows(plan(), keys(), spark().sessionState().newHadoopConf());
    }

    private Layout layout() {
        return new Layout(wanted, table.definition().rowType(), table.definition().partitionType(), SQLConf.get().readSideCharPadding());
    }

    @Override
    public StructType readSchema() {
        return wanted;
    }

    @Override
    public String description() {
        return "AcidScan " + table.name() + (table.asOf() == null ? "" : " as of " + table.asOf())
            + (range == null ? "" : ", " + range) + ", partitions " + shown(ofKeys) + ", pushed " + shown(ofRows) + (limit == null ? "" : ", limit " + limit);
    }

    /** Returns conditions as Spark shows those of its own tables, with dates as dates. */
    private static List<Object> shown(List<Predicate> conditions) {
        List<Object> shown = new ArrayList<>();
        for (Predicate condition : conditions) {
            Filter filter = known(condition);
            shown.add(filter == null ? condition : filter);
        }
        return shown;
    }

    /**
     * Returns a condition as a filter; null unless all its parts can be converted. Of an OR, Spark's function would return
     * only the side that can be, which not all rows meet.
     */
    private static Filter known(Predicate condition) {
        for (Expression part : condition.children()) if (part instanceof Predicate inner && known(inner) == null) return null;
        return PredicateUtils.toV1(condition).getOrElse(() -> null);
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpoint) {
        return new AppendedRows(this, options, range instanceof ChangeRange changes ? changes : null);
    }

    @Override
    public ColumnarSupportMode columnarSupportMode() {
        return isColumnar() ? ColumnarSupportMode.SUPPORTED : ColumnarSupportMode.UNSUPPORTED;
    }

    private boolean isColumnar() {
        return plain() == null || plain().isColumnar();
    }

    /** Estimates the size of the columns that are read by their share of a row, as Spark does for its own files. */
    @Override
    public Statistics estimateStatistics() {
        if (transaction == null) return statistics(table.definition().bytes(), range == null ? table.definition().rows() : null, Map.of());
        long all = Math.max(1, table.type().defaultSize());
        long bytes = (long) (plan().bytes() * SQLConf.get().fileCompressionFactor() * wanted.defaultSize() / all);
        Long rows = plan().rowCount() != null ? plan().rowCount() : range == null ? rowsIn(plan().bytes()) : null;
        return statistics(bytes, rows, rows == null ? Map.of() : plan().columns().of(wanted, rows));
    }

    /**
     * Returns the number of rows in so many bytes. The recorded rows and bytes may be older than the scan, or of more
     * partitions, so only their ratio is used: the size of a row.
     */
    private Long rowsIn(long bytes) {
        Long rows = table.definition().rows(), of = table.definition().bytes();
        return rows == null || of == null || of == 0 ? null : Long.valueOf(Math.round((double) rows / of * bytes));
    }

    private static Statistics statistics(Long bytes, Long rows, Map<NamedReference, ColumnStatistics> columns) {
        return new Statistics() {
            @Override
            public OptionalLong sizeInBytes() {
                return bytes == null ? OptionalLong.empty() : OptionalLong.of(bytes);
            }

            @Override
            public OptionalLong numRows() {
                return rows == null ? OptionalLong.empty() : OptionalLong.of(rows);
            }

            @Override
            public Map<NamedReference, ColumnStatistics> columnStats() {
                return columns;
            }
        };
    }

    @Override
    public InputPartition[] planInputPartitions() {
        SQLConf settings = SQLConf.get();
        scala.Option<Object> least = settings.filesMinPartitionNum();
        int parallelism = least.isDefined() ? (Integer) least.get() : spark().leafNodeDefaultParallelism();
        List<ScanPlan.DataFile> files = running().files();
        if (!whileRunning.isEmpty()) files = files.stream().filter(file -> mayHoldRows(keys().get(file.directory()))).toList();
        long largest = settings.filesMaxPartitionBytes(), openCost = settings.filesOpenCostInBytes();
        if (groups == null || !groups.areKnownOf(plan().files())) {
            return AcidPartition.of(files, largest, openCost, parallelism, this::isSplitable).toArray(new InputPartition[0]);
        }
        List<AcidPartition.Keyed> grouped = new ArrayList<>();
        groups.of(files, keys()).forEach((key, of) -> AcidPartition.of(of, largest, openCost, 1, this::isSplitable)
            .forEach(partition -> grouped.add(new AcidPartition.Keyed(partition, key))));
        return grouped.toArray(new InputPartition[0]);
    }

    /**
     * Reports the groups of rows. Spark asks before it plans tasks, also for scans that it drops afterwards, so nothing is
     * read for the answer. Groups become tasks, many for a table of many partitions, whether a join needs them or not. So
     * they are reported only if Spark's setting for them is set, as it is by default in newer Sparks; and not if a file's
     * bucket turns out to be unknown.
     */
    @Override
    public Partitioning outputPartitioning() {
        SQLConf settings = SQLConf.get();
        boolean isWanted = settings.contains(GROUPING) && settings.v2BucketingEnabled() && range == null;
        groups = isWanted ? Groups.of(TableShape.of(table.definition()), wanted) : null;
        return groups == null ? new UnknownPartitioning(0) : new KeyGroupedPartitioning(groups.keys(), 0);
    }

    private boolean isSplitable(ScanPlan.DataFile file) {
        return plain() == null || plain().isSplitable(plan().directories().get(file.directory()).storage(), file.path());
    }

    /** Returns the keys by which a join may skip partitions once it has read its other side. */
    @Override
    public NamedReference[] filterAttributes() {
        List<String> names = List.of(table.definition().partitionType().fieldNames());
        return Arrays.stream(wanted.fieldNames()).filter(names::contains).map(FieldReference::column).toArray(NamedReference[]::new);
    }

    @Override
    public void filter(Predicate[] predicates) {
        StructType types = table.definition().partitionType();
        whileRunning = Arrays.stream(predicates).map(condition -> KeyCondition.of(condition, types)).filter(Objects::nonNull).toList();
    }

    private boolean mayHoldRows(InternalRow keys) {
        return whileRunning.stream().allMatch(condition -> condition.mayHold(keys));
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        running();  // Spark may ask for the readers or for the partitions first: both need the same plan
        Configuration settings = spark().sessionState().newHadoopConf();
        if (plain() != null) return plain().readers(storages(), keys(), filters(), settings, this);
        OrcConf.IS_SCHEMA_EVOLUTION_CASE_SENSITIVE.setBoolean(settings, SQLConf.get().caseSensitiveAnalysis());
        pushDown(settings);
        ReadContext context = new ReadContext(
            new SerializableConfiguration(new JobConf(settings)), layout(), plan(), keys(),
            SQLConf.get().orcVectorizedReaderBatchSize(), isMoving, groups == null || !groups.areKnownOf(plan().files()) ? null : groups.check());
        return new AcidReaderFactory(
            JavaSparkContext.fromSparkContext(spark().sparkContext()).broadcast(context), this);
    }

    private static SparkSession spark() {
        return SparkSession.active();
    }

    /** Gives the conditions to ORC. In an ACID file ORC finds their columns inside "row". */
    private void pushDown(Configuration settings) {
        StructType row = table.definition().rowType();
        scala.Option<?> argument = SparkInternals.orcFilter(row, filters());
        if (SQLConf.get().orcFilterPushDown() && argument.isDefined()) {
            OrcInputFormat.setSearchArgument(settings, (SearchArgument) argument.get(), row.fieldNames());
        }
    }

    private List<Filter> filters() {
        StructType row = table.definition().rowType();
        List<Filter> filters = new ArrayList<>();
        for (Predicate condition : ofRows) {
            Filter filter = known(condition);
            Filter shown = filter != null && isOfRow(filter, row) ? OrcConditions.shown(filter) : null;
            if (shown != null) filters.add(shown);
        }
        return filters;
    }

    private static boolean isOfRow(Filter filter, StructType row) {
        List<String> names = List.of(row.fieldNames());
        for (String name : filter.references()) if (!names.contains(name) || isPadded(row.apply(name))) return false;
        return filter.references().length > 0;
    }

    /** Returns true for a column with a CHAR. Files may lack its blanks, so a condition could miss the value. */
    private static boolean isPadded(StructField field) {
        var declared = CharVarcharUtils.getRawType(field.metadata());
        return declared.isDefined() && declared.get().existsRecursively(part -> part instanceof CharType);
    }

    /** Returns the values of the partition keys, by directory. */
    private synchronized List<InternalRow> keys() {
        if (keys == null) keys = valuesOfKeys(plan());
        return keys;
    }

    private List<InternalRow> valuesOfKeys(ScanPlan of) {
        StructType types = table.definition().partitionType();
        List<InternalRow> all = new ArrayList<>();
        for (ScanPlan.Directory directory : of.directories()) {
            InternalRow values = PartitionKeys.typed(types, Arrays.asList(directory.values()));
            all.add(SQLConf.get().readSideCharPadding() ? PartitionKeys.padded(types, values) : values);
        }
        return all;
    }

    /** Returns true for a scan of the same rows and columns: Spark then reads them once. */
    @Override
    public boolean equals(Object other) {
        return other instanceof AcidScan scan && scan.transaction == transaction && scan.table.equals(table)
            && scan.wanted.equals(wanted) && scan.ofKeys.equals(ofKeys) && scan.ofRows.equals(ofRows)
            && Objects.equals(scan.limit, limit) && Objects.equals(scan.range, range);
    }

    @Override
    public int hashCode() {
        return Objects.hash(table, wanted, ofKeys, ofRows, limit);
    }
}
