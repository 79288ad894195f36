package transactionmetastore.spark.catalog;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.ChangelogRange;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.read.AcidScanBuilder;
import transactionmetastore.spark.table.AsOf;
import transactionmetastore.spark.table.ChangeColumn;
import transactionmetastore.spark.table.ChangeRange;
import transactionmetastore.spark.table.RowId;
import transactionmetastore.spark.table.WriterFunction;

/**
 * The changes of a table's rows; versions are write ids.
 *
 * An update deletes a row and inserts another one with another ROW__ID. Only a primary key shows which two belong together,
 * so Spark identifies rows by the primary key where there is one.
 */
public record AcidChangelog(AcidTable table, ChangeRange range) implements Changelog {
    static AcidChangelog of(AcidTable table, ChangelogContext context) {
        if (!table.definition().isFullAcid()) {
            throw new AcidException("InvalidOperationError", table.fullName() + " is insert-only: its rows have no ids, and only full-ACID "
                + "tables have changes to read.");
        }
        if (context.computeUpdates() && table.definition().primaryKey().isEmpty()) {
            throw new AcidException("InvalidOperationError", table.fullName() + " has no PRIMARY KEY, and without one nothing says which "
                + "inserted row is the new version of which deleted one: leave out computeUpdates, or declare the key.");
        }
        return new AcidChangelog(table, range(table, context.range()));
    }

    private static ChangeRange range(AcidTable table, ChangelogRange of) {
        if (of instanceof ChangelogRange.VersionRange versions) {
            long first = version(table, versions.startingVersion()) + (of.startingBoundInclusive() ? 0 : 1);
            Long last = versions.endingVersion()
                .map(end -> version(table, end) - (of.endingBoundInclusive() ? 0 : 1)).orElse(null);
            return new ChangeRange(first, last, null, null);
        }
        if (of instanceof ChangelogRange.TimestampRange times) {
            long from = times.startingTimestamp();
            long afterMs = of.startingBoundInclusive() ? Math.floorDiv(from - 1, 1000L) : Math.floorDiv(from, 1000L);
            Long untilMs = times.endingTimestamp()
                .map(end -> Math.floorDiv(of.endingBoundInclusive() ? end : end - 1, 1000L)).orElse(null);
            return new ChangeRange(null, null, afterMs, untilMs);
        }
        throw new AcidException("InvalidInputError", "From where on are the changes of " + table.fullName() + " to be read? Give the write id "
            + "of the first: CHANGES FROM VERSION 5, or the option startingVersion.");
    }

    private static long version(AcidTable table, String text) {
        return AsOf.version(table.fullName(), text).writeId();
    }

    @Override
    public String name() {
        return table.name();
    }

    @Override
    public Column[] columns() {
        List<Column> all = new ArrayList<>(Arrays.asList(table.columns()));
        all.add(Column.create(RowId.ROW__ID.column(), RowId.ROW__ID.type(), false));
        for (ChangeColumn each : ChangeColumn.values()) all.add(Column.create(each.column(), each.type(), each == ChangeColumn.TIME));
        return all.toArray(new Column[0]);
    }

    @Override
    public boolean containsCarryoverRows() {
        return false;
    }

    @Override
    public boolean containsIntermediateChanges() {
        return true;
    }

    @Override
    public boolean representsUpdateAsDeleteAndInsert() {
        return true;
    }

    /**
     * Returns the columns that identify a row. Without a primary key these are ROW__ID and the partition keys, since each
     * partition numbers its rows separately.
     */
    @Override
    public NamedReference[] rowId() {
        List<String> key = table.definition().primaryKey();
        Stream<String> names = !key.isEmpty() ? key.stream()
            : Stream.concat(Stream.of(RowId.ROW__ID.column()), Arrays.stream(table.definition().partitionType().fieldNames()));
        return names.map(name -> Expressions.column(WriterFunction.quoted(name))).toArray(NamedReference[]::new);
    }

    @Override
    public NamedReference rowVersion() {
        return Expressions.column(RowId.ROW__ID.column() + ".writeid");
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return new AcidScanBuilder(table, options, CatalogV2Util.v2ColumnsToStructType(columns()), range);
    }
}
