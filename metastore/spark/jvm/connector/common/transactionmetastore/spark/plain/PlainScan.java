package transactionmetastore.spark.plain;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import transactionmetastore.spark.internals.RowFiles;
import transactionmetastore.spark.internals.Rows;
/**
 * A scan of files that hold only rows, each read by Spark's own reader of its format, or by Hive's classes.
 *
 * Their rows are handed on in batches where every format of the scan has them, else one by one. "wanted": columns of files,
 * then partition keys, each in the table's order.
 */
public final class PlainScan {
    private final SparkSession spark;
    private final StructType row, keys, read, readKeys;
    private final List<PlainStorage> storages;
    private final List<RowFiles> formats = new ArrayList<>();
    private final boolean isColumnar;

    /** Creates a scan. "row", "keys": all columns of the table; "storages": of each directory. */
    public PlainScan(
            SparkSession spark, String table, StructType row, StructType keys, StructType wanted, List<PlainStorage> storages) {
        this.spark = spark;
        this.row = row;
        this.keys = keys;
        this.storages = storages.stream().distinct().toList();
        List<String> names = List.of(keys.fieldNames());
        StructType columns = new StructType(), ofKeys = new StructType();
        for (StructField field : wanted.fields()) {
            if (names.contains(field.name())) ofKeys = ofKeys.add(field);
            else columns = columns.add(field);
        }
        this.read = columns;
        this.readKeys = ofKeys;
        for (PlainStorage storage : this.storages) formats.add(storage.files(spark, table));
        this.isColumnar = formats.stream().allMatch(format -> format.haveBatches(spark, wanted));
    }

    /** Returns the columns to read. A column is read whole where a format cannot read a part of a nested column. */
    public static StructType whole(StructType wanted, StructType all) {
        StructType whole = new StructType();
        for (StructField field : wanted.fields()) whole = whole.add(all.apply(field.name()));
        return whole;
    }

    public boolean isColumnar() {
        return isColumnar;
    }

    /** Returns true if parts of a file can be read separately. */
    public boolean isSplitable(PlainStorage storage, String path) {
        return formats.get(storages.indexOf(storage)).areSplitable(spark, isColumnar, path);
    }

    /**
     * Returns the factory of readers. "ofDirectories": the storage of each directory, "values": its keys; "filters": rows
     * that do not meet them may be left out; "scan": the owner of the snapshot.
     */
    public PartitionReaderFactory readers(
            List<PlainStorage> ofDirectories, List<InternalRow> values, List<Filter> filters, Configuration settings, Object scan) {
        List<RowFiles.Reader> readers = new ArrayList<>();
        for (RowFiles format : formats) readers.add(format.reader(spark, row, readKeys, read, filters, isColumnar, settings));
        int[] readerOf = ofDirectories.stream().mapToInt(storages::indexOf).toArray();
        boolean[] lacksKeys = new boolean[storages.size()];
        for (int place = 0; place < lacksKeys.length; ++place) lacksKeys[place] = storages.get(place).isSerde();
        return new PlainReaderFactory(readers, readerOf, lacksKeys, chosen(values), isColumnar, scan);
    }

    /** Returns for each directory the values of those keys that are read. */
    private InternalRow[] chosen(List<InternalRow> values) {
        InternalRow[] chosen = new InternalRow[values.size()];
        for (int directory = 0; directory < chosen.length; ++directory) {
            Object[] parts = new Object[readKeys.length()];
            for (int place = 0; place < parts.length; ++place) {
                int key = keys.fieldIndex(readKeys.fields()[place].name());
                parts[place] = values.get(directory).get(key, keys.fields()[key].dataType());
            }
            chosen[directory] = Rows.of(parts);
        }
        return chosen;
    }
}
