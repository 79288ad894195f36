package transactionmetastore.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchPartitionException;
import org.apache.spark.sql.catalyst.analysis.PartitionsAlreadyExistException;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import transactionmetastore.spark.files.Messages;
import transactionmetastore.spark.internals.Rows;
import transactionmetastore.spark.table.KeyText;
import transactionmetastore.spark.table.PartitionKeys;
import transactionmetastore.spark.txn.AcidTransaction;
import transactionmetastore.spark.write.AcidWrites;

/**
 * The registered partitions of a table, empty ones included.
 *
 * A partition is known by its typed values, however its name spells them: PARTITION (n = 3) is also what Hive calls n=03.
 */
public final class Partitions {
    private final AcidTable table;
    private final StructType keys;

    /** A registered partition. "texts": its values as its name spells them. */
    private record Place(String name, List<String> texts, InternalRow values, String location) {}

    Partitions(AcidTable table) {
        this.table = table;
        this.keys = table.definition().partitionType();
    }

    /** Returns the values of the partitions whose keys "names" have the values "wanted". */
    InternalRow[] identifiers(String[] names, InternalRow wanted) {
        return matching(names, wanted).stream().map(Place::values).toArray(InternalRow[]::new);
    }

    void add(InternalRow[] wanted, Map<String, String>[] properties) {
        requireNoBlock();
        List<Map<String, Object>> added = new ArrayList<>();
        for (int at = 0; at < wanted.length; ++at) {
            Map<String, Object> partition = new HashMap<>();
            partition.put("values", texts(wanted[at]));
            partition.put("location", properties[at].get(TableCatalog.PROP_LOCATION));
            added.add(partition);
        }
        table.planner().call("add_partitions", arguments(Map.of("partitions", added)));
    }

    boolean drop(InternalRow[] wanted, boolean purge) {
        requireNoBlock();
        List<String> names = Arrays.stream(wanted).flatMap(this::named).map(Place::name).toList();
        if (names.isEmpty()) return false;
        table.planner().call("drop_partitions", arguments(Map.of("names", names, "purge", purge)));
        return true;
    }

    boolean rename(InternalRow from, InternalRow to) throws NoSuchPartitionException, PartitionsAlreadyExistException {
        requireNoBlock();
        Place old = existing(from);
        if (named(to).findAny().isPresent()) throw new PartitionsAlreadyExistException(table.name(), to, keys);
        table.planner().call("rename_partition", arguments(Map.of("partition", old.name, "values", texts(to))));
        return true;
    }

    private void requireNoBlock() {
        table.requireNoBlock("The partitions of " + table.fullName() + " are altered");
    }

    boolean truncate(InternalRow wanted) throws NoSuchPartitionException {
        existing(wanted);
        return truncate(new InternalRow[] {wanted});
    }

    /** Empties partitions, all in the same transaction. */
    boolean truncate(InternalRow[] wanted) {
        List<String> emptied = Arrays.stream(wanted).flatMap(this::named).map(place -> Messages.text(place.texts)).toList();
        if (!emptied.isEmpty()) AcidWrites.truncate(table, emptied);
        return true;
    }

    /** Returns the properties of a partition that SHOW TABLE EXTENDED ... PARTITION prints. */
    Map<String, String> metadata(InternalRow wanted) {
        return named(wanted).findFirst().map(place -> Map.of(TableCatalog.PROP_LOCATION, place.location)).orElse(Map.of());
    }

    private Place existing(InternalRow wanted) throws NoSuchPartitionException {
        var first = named(wanted).findFirst();
        if (first.isEmpty()) throw new NoSuchPartitionException(table.name(), wanted, keys);
        return first.get();
    }

    /** Returns the partitions with these values: several names may spell the same values. */
    private Stream<Place> named(InternalRow wanted) {
        return matching(keys.fieldNames(), wanted).stream();
    }

    private List<Place> matching(String[] names, InternalRow wanted) {
        List<Object> values = new ArrayList<>();
        List<Integer> places = new ArrayList<>();
        List<List<String>> filter = new ArrayList<>();
        for (int at = 0; at < names.length; ++at) {
            int place = keys.fieldIndex(names[at]);
            StructField field = keys.fields()[place];
            Object value = wanted.isNullAt(at) || isNull(wanted.get(at, field.dataType())) ? null
                : wanted.get(at, field.dataType());
            String text = texts(new StructType().add(field), Rows.of(value)).get(0);
            filter.add(text == null ? List.of(field.name(), "is null") : List.of(field.name(), "=", text));
            values.add(PartitionKeys.padded(field, value));
            places.add(place);
        }
        List<Place> matching = new ArrayList<>();
        for (JsonNode partition : table.planner().call("partitions", arguments(Map.of("filter", filter))).path("partitions")) {
            Place place = place(partition);
            boolean isIt = true;
            for (int at = 0; at < names.length; ++at) {
                StructField field = keys.fields()[places.get(at)];
                Object own = place.values.isNullAt(places.get(at)) ? null : place.values.get(places.get(at), field.dataType());
                isIt &= Objects.equals(PartitionKeys.padded(field, own), values.get(at));
            }
            if (isIt) matching.add(place);
        }
        return matching;
    }

    private Place place(JsonNode partition) {
        List<String> texts = new ArrayList<>();
        for (JsonNode value : partition.path("values")) texts.add(value.isNull() ? null : value.asText());
        return new Place(partition.path("name").asText(), texts, PartitionKeys.typed(keys, texts), partition.path("location").asText());
    }

    private List<String> texts(InternalRow values) {
        return texts(keys, values);
    }

    private static List<String> texts(StructType keys, InternalRow values) {
        List<String> texts = new ArrayList<>();
        String zone = SQLConf.get().sessionLocalTimeZone();
        for (Object text : Messages.list(new PartitionKeys(keys, 0, zone).of(values))) {
            texts.add((String) text);
        }
        return texts;
    }

    /** Returns true for Hive's two spellings of NULL. */
    private static boolean isNull(Object value) {
        return value instanceof UTF8String text && KeyText.isNull(text);
    }

    private Map<String, Object> arguments(Map<String, Object> more) {
        Map<String, Object> arguments = new HashMap<>(AcidTransaction.caller());
        arguments.putAll(table.definition().dbAndTable());
        arguments.putAll(more);
        return arguments;
    }
}
