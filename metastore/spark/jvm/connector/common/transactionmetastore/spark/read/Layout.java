package transactionmetastore.spark.read;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import transactionmetastore.spark.files.EventColumns;
import transactionmetastore.spark.internals.DeclaredTexts;
import transactionmetastore.spark.internals.OrcTypes;
import transactionmetastore.spark.table.ChangeColumn;
import transactionmetastore.spark.table.RowId;

/**
 * The sources of a scan's columns, and the fields of files that they need.
 *
 * The request for a file with events has the six fields of an event, "row" with only the wanted columns. The request for a
 * plain file has all columns of the table, and reads the wanted ones: Hive before version 2 did not name them, so positions
 * count.
 */
final class Layout implements Serializable {
    private static final long serialVersionUID = 1L;

    enum From { FILE, KEY, ID, CHANGE }

    /**
     * The source of a column. "place": its number among the wanted columns of the file's row, of the key, of the id, or of
     * the change.
     */
    record Source(From from, int place) implements Serializable {
        private static final long serialVersionUID = 1L;
    }

    final StructType wanted;
    final List<Source> sources = new ArrayList<>();
    final StructType events;
    final StructType plain;
    /** Positions of the wanted columns in a plain file. */
    final int[] plainPlaces;
    final boolean areIdsWanted;
    /** Declared types of the wanted columns whose texts get blanks; null for the others. */
    final DataType[] padded;

    /** Creates a layout. "isPadded": whether CHAR columns get the blanks that files may lack. */
    Layout(StructType wanted, StructType row, StructType keys, boolean isPadded) {
        this.wanted = wanted;
        this.padded = new DataType[wanted.length()];
        List<StructField> inRow = new ArrayList<>();
        List<Integer> places = new ArrayList<>();
        StructField[] all = row.fields().clone();
        List<String> rowNames = Arrays.asList(row.fieldNames()), keyNames = Arrays.asList(keys.fieldNames());
        boolean ids = false;
        for (StructField field : wanted.fields()) {
            int place = rowNames.indexOf(field.name()), key = keyNames.indexOf(field.name());
            if (place >= 0) {
                sources.add(new Source(From.FILE, inRow.size()));
                inRow.add(field);
                places.add(place);
                if (isPadded) padded[sources.size() - 1] = DeclaredTexts.type(row.fields()[place]);
                all[place] = field;
            } else if (key >= 0) {
                sources.add(new Source(From.KEY, key));
            } else {
                ChangeColumn change = ChangeColumn.named(field.name());
                if (change != null) {
                    sources.add(new Source(From.CHANGE, change.ordinal()));
                    continue;
                }
                RowId id = RowId.named(field.name());
                if (id == null) throw new IllegalStateException("There is no column " + field.name());
                sources.add(new Source(From.ID, id.ordinal()));
                ids |= id != RowId.PARTITION;
            }
        }
        areIdsWanted = ids;
        events = EventColumns.around(new StructType(inRow.toArray(new StructField[0])));
        plain = new StructType(all);
        plainPlaces = places.stream().mapToInt(Integer::intValue).toArray();
    }

    StructType row() {
        return (StructType) events.fields()[EventColumns.ROW].dataType();
    }

    /** Returns the wanted columns of a plain file, in their order. */
    StructField[] plainFields() {
        return row().fields();
    }

    static String orc(StructType type) {
        return OrcTypes.text(type);
    }

    /** Returns the fields of an event to read, by ORC's names. */
    String includedOfEvents(boolean hasDeletes, ScanPlan.Visible visible, boolean areChanges) {
        List<String> included = new ArrayList<>();
        if (visible.isNotDelete()) included.add(Integer.toString(EventColumns.OPERATION));
        if (areIdsWanted || hasDeletes || areChanges) for (int place = EventColumns.ORIGINAL; place <= EventColumns.ROW_ID; ++place) included.add(Integer.toString(place));
        if (visible.highWatermark() != null || visible.hidden().length > 0 || areChanges) included.add(Integer.toString(EventColumns.CURRENT));
        if (row().length() > 0) included.add(Integer.toString(EventColumns.ROW));
        return String.join(",", included);
    }

    String includedOfPlain() {
        List<String> included = new ArrayList<>();
        for (int place : plainPlaces) included.add(Integer.toString(place));
        return String.join(",", included);
    }
}
