package transactionmetastore.spark.read;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import transactionmetastore.spark.internals.KeyCondition;
import transactionmetastore.spark.plain.PlainScan;
import transactionmetastore.spark.table.PlannedRange;
import transactionmetastore.spark.table.TableDefinition;
import transactionmetastore.spark.txn.TransactionalTable;

/** A builder of scans out of a query's columns and conditions. It calls neither the planner nor the metastore. */
public final class AcidScanBuilder
        implements ScanBuilder, SupportsPushDownRequiredColumns, SupportsPushDownV2Filters, SupportsPushDownAggregates,
        SupportsPushDownLimit {
    private final TransactionalTable table;
    private final CaseInsensitiveStringMap options;
    private final PlannedRange range;
    private StructType wanted;
    private Predicate[] pushed = {};
    private AcidScan planned;
    private FooterScan answered;
    private boolean isMoving;
    private Integer limit;

    /** Creates a builder. "options": of a stream. */
    public AcidScanBuilder(TransactionalTable table, CaseInsensitiveStringMap options) {
        this(table, options, table.type(), null);
    }

    /** Creates a builder for the rows of a range, with all columns that they have there. */
    public AcidScanBuilder(TransactionalTable table, CaseInsensitiveStringMap options, StructType all, PlannedRange range) {
        this.table = table;
        this.options = options;
        this.wanted = all;
        this.range = range;
    }

    /** Prepares the scan of an UPDATE or a MERGE, which writes again the rows that it reads. */
    public AcidScanBuilder moving() {
        isMoving = true;
        return this;
    }

    @Override
    public void pruneColumns(StructType required) {
        wanted = mayLackParts() ? PlainScan.whole(required, table.type()) : required;
    }

    /**
     * Returns true if nested columns may have to be read whole: Hive's classes cannot read parts, and a partition may have
     * another storage than the table.
     */
    private boolean mayLackParts() {
        TableDefinition definition = table.definition();
        return !definition.isFullAcid() && (definition.storage().isSerde() || definition.partitionType().length() > 0);
    }

    /**
     * Takes conditions. Those that partition keys answer fully are done with. All others skip files or stripes, not single
     * rows, so Spark evaluates them again.
     */
    @Override
    public Predicate[] pushPredicates(Predicate[] predicates) {
        pushed = predicates;
        return Arrays.stream(predicates).filter(condition -> !isAnswered(condition)).toArray(Predicate[]::new);
    }

    private boolean isAnswered(Predicate condition) {
        return KeyCondition.of(condition, table.definition().partitionType()) != null;
    }

    @Override
    public Predicate[] pushedPredicates() {
        return pushed.clone();
    }

    /** Returns true if whole partitions are read. */
    private boolean isOfWholePartitions() {
        return range == null && Arrays.stream(pushed).allMatch(this::isAnswered);
    }

    /** Takes aggregates of whole partitions, if footers contain them. */
    @Override
    public boolean pushAggregation(Aggregation aggregation) {
        TableDefinition definition = table.definition();
        if (!isOfWholePartitions() || !table.isInStatement() || !definition.storage().isOrc()) return false;
        StructType bounded = definition.isFullAcid() ? definition.rowType() : new StructType();  // old plain files name no columns
        FooterValues wanted = FooterValues.of(aggregation, bounded, definition.partitionType());
        if (wanted == null) return false;
        planned = scan(true);
        List<Object[]> rows = planned.rowsOfFooters(wanted);
        if (rows == null) return false;
        answered = new FooterScan(planned.description(), wanted, rows);
        return true;
    }

    @Override
    public boolean supportCompletePushDown(Aggregation aggregation) {
        return true;
    }

    /**
     * Takes a limit, and reads only as many files as have so many rows by their footers. A task reads more rows, so Spark
     * applies the limit again.
     */
    @Override
    public boolean pushLimit(int most) {
        if (!isOfWholePartitions() || isMoving) return false;
        limit = most;
        return true;
    }

    @Override
    public boolean isPartiallyPushed() {
        return true;
    }

    @Override
    public Scan build() {
        return answered != null ? answered : scan(false);
    }

    private AcidScan scan(boolean isCounted) {
        List<Predicate> ofKeys = new ArrayList<>(), ofRows = new ArrayList<>();
        for (Predicate condition : pushed) {
            (PartitionConditions.isOfKeys(condition, table.definition().partitionType()) ? ofKeys : ofRows).add(condition);
        }
        AcidScan scan = new AcidScan(table, wanted, ofKeys, ofRows, isCounted, isCounted ? null : planned, isMoving, options, range);
        return limit == null || isCounted ? scan : scan.limited(limit);
    }
}
