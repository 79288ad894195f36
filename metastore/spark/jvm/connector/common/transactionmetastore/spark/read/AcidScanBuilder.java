package transactionmetastore.spark.read;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;
import transactionmetastore.spark.catalog.AcidTable;

/** What a query wants of a table. Building the scan asks nobody. */
public final class AcidScanBuilder implements ScanBuilder, SupportsPushDownRequiredColumns, SupportsPushDownV2Filters {
    private final AcidTable table;
    private StructType wanted;
    private Predicate[] pushed = {};

    public AcidScanBuilder(AcidTable table) {
        this.table = table;
        this.wanted = table.type();
    }

    @Override
    public void pruneColumns(StructType required) {
        wanted = required;
    }

    /** All of them leave out partitions, files or stripes; none of them leaves out rows, so Spark looks at each again. */
    @Override
    public Predicate[] pushPredicates(Predicate[] predicates) {
        pushed = predicates;
        return predicates;
    }

    @Override
    public Predicate[] pushedPredicates() {
        return pushed.clone();
    }

    @Override
    public Scan build() {
        List<Predicate> ofKeys = new ArrayList<>(), ofRows = new ArrayList<>();
        for (Predicate one : pushed) {
            (PartitionConditions.isOfKeys(one, table.definition().partitionType()) ? ofKeys : ofRows).add(one);
        }
        return new AcidScan(table, wanted, ofKeys, ofRows);
    }
}
