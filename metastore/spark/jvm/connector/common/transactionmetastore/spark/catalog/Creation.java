package transactionmetastore.spark.catalog;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import transactionmetastore.spark.files.Messages;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.txn.AcidTransaction;

/** Conversions of a table's definition from Spark's form into the planner's. */
public final class Creation {
    private static final Set<String> NOT_PROPERTIES = Set.of(
        TableCatalog.PROP_PROVIDER, TableCatalog.PROP_LOCATION, TableCatalog.PROP_COMMENT, TableCatalog.PROP_OWNER,
        TableCatalog.PROP_EXTERNAL, TableCatalog.PROP_IS_MANAGED_LOCATION, AcidCatalogBase.FORMAT, AcidCatalogBase.SERDE,
        AcidCatalogBase.CONSTRAINTS, AcidCatalogBase.DESCENDING);

    /**
     * Options of USING hive, as Spark's HiveOptions reads them: the storage format, and delimiters by the names that SerDes
     * have for them.
     */
    private static final Set<String> OF_FORMAT = Set.of("fileformat", "inputformat", "outputformat", "serde");
    private static final Map<String, String> DELIMITERS = Map.of(
        "fielddelim", "field.delim", "escapedelim", "escape.delim", "collectiondelim", "colelction.delim",
        "mapkeydelim", "mapkey.delim", "linedelim", "line.delim");

    private static final Predicate<String> IS_WORD = Pattern.compile("[A-Za-z0-9_]+").asMatchPredicate();

    private Creation() {}

    static Map<String, Object> of(
            Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties) {
        Map<String, Object> arguments = new HashMap<>();
        arguments.put("db", AcidCatalogBase.lower(ident.namespace()[0]));
        arguments.put("table", AcidCatalogBase.lower(ident.name()));
        List<String> keyNames = new ArrayList<>();
        for (Transform transform : partitions) {
            if (transform.name().equals("identity")) keyNames.add(name(transform.references()[0]));
            else if (transform.name().contains("bucket")) {
                arguments.put("buckets", buckets(transform, descending(properties)));
            }
            else throw new AcidException("UNSUPPORTED", "A transactional table is partitioned by columns, not by "
                + transform.describe() + ": name columns, or use CLUSTERED BY ... INTO n BUCKETS.");
        }
        List<Map<String, Object>> plain = new ArrayList<>(), keys = new ArrayList<>();
        for (Column column : columns) if (!keyNames.contains(AcidCatalogBase.lower(column.name()))) plain.add(described(column));
        for (String key : keyNames) {
            Arrays.stream(columns).filter(column -> AcidCatalogBase.lower(column.name()).equals(key)).forEach(column -> keys.add(described(column)));
        }
        arguments.put("columns", plain);
        arguments.put("partition_keys", keys);
        arguments.put("properties", kept(properties));
        arguments.put("comment", properties.get(TableCatalog.PROP_COMMENT));
        arguments.put("location", properties.get(TableCatalog.PROP_LOCATION));
        arguments.put("format", format(properties));
        arguments.put("constraints", Messages.list(properties.getOrDefault(AcidCatalogBase.CONSTRAINTS, "[]")));
        Map<String, Object> rows = new HashMap<>();
        Map<String, String> ofRows = new HashMap<>();
        properties.forEach((key, value) -> {
            int begin = AcidCatalogBase.SERDE_PROPERTY.length();
            if (key.startsWith(AcidCatalogBase.SERDE_PROPERTY)) ofRows.put(key.substring(begin), value);
        });
        ofHive(properties).asCaseSensitiveMap().forEach((option, value) -> {
            String lower = AcidCatalogBase.lower(option);
            if (!OF_FORMAT.contains(lower)) ofRows.put(DELIMITERS.getOrDefault(lower, option), value);
        });
        rows.put("serde", properties.getOrDefault(AcidCatalogBase.SERDE, ofHive(properties).get("serde")));
        rows.put("properties", ofRows);
        arguments.put("row_format", rows);
        arguments.put("if_not_exists", false);  // Spark has checked already
        arguments.putAll(AcidTransaction.caller());
        return arguments;
    }

    static Map<String, Object> like(Identifier ident, AcidTable source, Map<String, String> properties) {
        if (properties.containsKey(TableCatalog.PROP_PROVIDER)) {
            throw new AcidException("UNSUPPORTED", "A table that is made LIKE " + source.fullName() + " is stored as that is: leave "
                + "out USING, STORED AS and ROW FORMAT.");
        }
        Map<String, Object> arguments = new HashMap<>(AcidTransaction.caller());
        arguments.put("db", AcidCatalogBase.lower(ident.namespace()[0]));
        arguments.put("table", AcidCatalogBase.lower(ident.name()));
        arguments.put("like", source.fullName());
        arguments.put("location", properties.get(TableCatalog.PROP_LOCATION));
        arguments.put("properties", kept(properties));
        return arguments;
    }

    /** Returns the options of USING hive, which are not table properties; no options for any other format. */
    private static CaseInsensitiveStringMap ofHive(Map<String, String> properties) {
        Map<String, String> options = new HashMap<>();
        if (!"hive".equalsIgnoreCase(properties.get(AcidCatalogBase.FORMAT))) return CaseInsensitiveStringMap.empty();
        int begin = TableCatalog.OPTION_PREFIX.length();
        properties.forEach((key, value) -> {
            if (key.startsWith(TableCatalog.OPTION_PREFIX)) options.put(key.substring(begin), value);
        });
        return new CaseInsensitiveStringMap(options);
    }

    /**
     * Returns the format as STORED AS names it, or as "input format,output format". Without an option, Spark's own tables
     * USING hive are text files.
     */
    private static String format(Map<String, String> properties) {
        String format = properties.getOrDefault(AcidCatalogBase.FORMAT, "orc");
        if (!format.equalsIgnoreCase("hive")) return format;
        CaseInsensitiveStringMap options = ofHive(properties);
        if (!options.containsKey("inputFormat")) return options.getOrDefault("fileFormat", "textfile");
        return options.get("inputFormat") + "," + options.get("outputFormat");
    }

    private static Map<String, String> kept(Map<String, String> properties) {
        Map<String, String> kept = new HashMap<>(properties);
        kept.keySet().removeIf(ofHive(properties)::containsKey);
        kept.keySet().removeAll(NOT_PROPERTIES);
        kept.keySet().removeIf(key -> key.startsWith(TableCatalog.OPTION_PREFIX) || key.startsWith(AcidCatalogBase.SERDE_PROPERTY));
        return kept;
    }

    private static Map<String, Object> described(Column column) {
        Map<String, Object> described = new HashMap<>();
        described.put("name", AcidCatalogBase.lower(column.name()));
        described.put("type", type(column.name(), column.dataType()));
        described.put("comment", column.comment());
        described.put("not_null", !column.nullable());
        described.put("default", column.defaultValue() == null ? null : column.defaultValue().getSql());
        return described;
    }

    /**
     * Returns a type in Hive's text. Hive has no place for a collation, nor for every field name: such a table could not be
     * read, so the type is refused.
     */
    private static String type(String column, DataType type) {
        if (type.existsRecursively(part -> part instanceof StringType text && !text.isUTF8BinaryCollation())) {
            throw new AcidException("UNSUPPORTED", "The column " + column + " cannot have a collation: transactional tables compare "
                + "texts byte by byte, as Hive does. Leave out COLLATE, and write it in queries.");
        }
        if (type.existsRecursively(part -> part instanceof StructType struct && !Stream.of(struct.fieldNames()).allMatch(IS_WORD))) {
            throw new AcidException("UNSUPPORTED", "The column " + column + " has a field whose name is not of letters, digits and _ "
                + "alone: Hive's types hold no other. Give the field another name.");
        }
        return type.catalogString();
    }

    /** Returns the columns of SORTED BY that descend; Spark's grammar cannot express them. */
    private static List<String> descending(Map<String, String> properties) {
        return Stream.of(properties.getOrDefault(AcidCatalogBase.DESCENDING, "").split(",")).map(name -> AcidCatalogBase.lower(name.strip())).toList();
    }

    /**
     * Returns the buckets of bucket(n, columns) or sorted_bucket(columns, n, columns): n is a literal, columns are
     * references.
     */
    private static Map<String, Object> buckets(Transform transform, List<?> descending) {
        List<String> columns = new ArrayList<>(), sort = new ArrayList<>();
        Object count = null;
        boolean isSorted = transform.name().equals("sorted_bucket");
        for (var argument : transform.arguments()) {
            if (argument instanceof Literal<?> number) count = number.value();
            else if (argument instanceof NamedReference column) (isSorted && count != null ? sort : columns).add(name(column));
        }
        List<List<String>> order = new ArrayList<>();
        for (String column : sort) order.add(List.of(column, descending.contains(column) ? "desc" : "asc"));
        return Map.of("count", count == null ? 0 : count, "columns", columns, "sort", order);
    }

    public static String name(NamedReference column) {
        return AcidCatalogBase.lower(String.join(".", column.fieldNames()));
    }

    static List<Map<String, Object>> changes(AcidTable table, TableChange[] changes) {
        List<String> keys = List.of(table.definition().partitionType().fieldNames());
        long dropped = Arrays.stream(changes).filter(TableChange.DeleteColumn.class::isInstance).count();
        boolean isReplacing = dropped == table.columns().length;  // REPLACE COLUMNS also drops keys, which no statement can do
        List<Map<String, Object>> arguments = new ArrayList<>();
        for (TableChange change : changes) {
            if (isReplacing && change instanceof TableChange.DeleteColumn drop && keys.contains(path(drop.fieldNames()))) continue;
            arguments.add(change(table, change));
        }
        return arguments;
    }

    private static Map<String, Object> change(AcidTable table, TableChange change) {
        Map<String, Object> argument = new HashMap<>();
        if (change instanceof TableChange.ColumnChange column) {
            String[] names = column.fieldNames();
            argument.put("name", AcidCatalogBase.lower(names[0]));
            if (names.length > 1) argument.put("field", List.of(names).subList(1, names.length));
        }
        if (change instanceof TableChange.SetProperty set) {
            requireProperty(table, set.property());
            argument.put("op", "set");
            argument.put("properties", Map.of(set.property(), set.value()));
        } else if (change instanceof TableChange.RemoveProperty unset) {
            requireProperty(table, unset.property());
            argument.put("op", "unset");
            argument.put("keys", List.of(unset.property()));
        } else if (change instanceof TableChange.AddColumn add) {
            if (!add.isNullable() || add.defaultValue() != null) {
                throw added(table.fullName(), table.definition().isFullAcid(), add);
            }
            argument.put("op", "add_column");
            argument.put("type", type(path(add.fieldNames()), add.dataType()));
            argument.put("comment", add.comment());
            argument.put("after", after(add.position()));
        } else if (change instanceof TableChange.RenameColumn rename) {
            argument.put("op", "rename_column");
            argument.put("to", AcidCatalogBase.lower(rename.newName()));
        } else if (change instanceof TableChange.UpdateColumnType type) {
            argument.put("op", "change_type");
            argument.put("type", type(path(type.fieldNames()), type.newDataType()));
        } else if (change instanceof TableChange.UpdateColumnComment comment) {
            argument.put("op", "comment");
            argument.put("comment", comment.newComment());
        } else if (change instanceof TableChange.UpdateColumnPosition move) {
            argument.put("op", "move_column");
            argument.put("after", after(move.position()));
        } else if (change instanceof TableChange.DeleteColumn) {
            argument.put("op", "drop_column");
        } else {
            throw new AcidException("UNSUPPORTED", "The catalog cannot do this to " + table.fullName() + ": "
                + change.getClass().getSimpleName() + ". Set or unset properties, add, rename, retype or drop columns.");
        }
        return argument;
    }

    static boolean isOfColumnRule(TableChange change) {
        return change instanceof TableChange.UpdateColumnNullability || change instanceof TableChange.UpdateColumnDefaultValue;
    }

    /** Returns NOT NULL or DEFAULT of a column in the planner's form; without "is_enabled" when the rule is dropped. */
    @SuppressWarnings("deprecation")  // Spark 4.0 has no other way to the default
    static Map<String, Object> columnRule(TableChange change) {
        if (!isOfColumnRule(change) || ((TableChange.ColumnChange) change).fieldNames().length > 1) {
            throw new AcidException("UNSUPPORTED", "SET and DROP of NOT NULL and DEFAULT are for whole columns, by a statement of their own: "
                + "leave out other changes.");
        }
        Map<String, Object> rule = new HashMap<>(Map.of("columns", List.of(path(((TableChange.ColumnChange) change).fieldNames()))));
        boolean isSet;
        if (change instanceof TableChange.UpdateColumnDefaultValue value) {
            rule.put("kind", "DEFAULT");
            rule.put("value", value.newDefaultValue());
            isSet = value.newDefaultValue() != null && !value.newDefaultValue().isEmpty();
        } else {
            rule.put("kind", "NOT_NULL");
            isSet = !((TableChange.UpdateColumnNullability) change).nullable();
        }
        if (isSet) rule.putAll(Map.of("is_enabled", true, "is_relied_on", true));
        return rule;
    }

    /**
     * Returns the refusal of a column with a default that existing rows would not get. The text names the statements that
     * add it correctly.
     */
    private static AcidException added(String table, boolean isFullAcid, TableChange.AddColumn add) {
        String name = path(add.fieldNames()), type = add.dataType().sql();
        String value = add.defaultValue() == null ? "..." : add.defaultValue().getSql();
        String words = (add.isNullable() ? "" : " NOT NULL") + (add.defaultValue() == null ? "" : " DEFAULT " + value);
        String alter = "ALTER TABLE " + table + " ALTER COLUMN " + name + " SET";
        String declared = (add.isNullable() ? "" : "; " + alter + " NOT NULL") + (add.defaultValue() == null ? "" : "; " + alter + " DEFAULT " + value);
        String filled = isFullAcid ? "UPDATE " + table + " SET " + name + " = " + value
            : "INSERT OVERWRITE " + table + " BY NAME SELECT * EXCEPT (" + name + "), " + value + " AS " + name + " FROM " + table;
        return new AcidException("UNSUPPORTED", "Column " + name + " of " + table + " cannot be added with" + words + ", which the rows "
            + "that are there would not have. Do it step by step: ALTER TABLE " + table + " ADD COLUMN " + name + " " + type + "; " + filled
            + declared + ".");
    }

    /** Refuses SET LOCATION and OWNER TO: Spark passes them as properties with reserved names. */
    private static void requireProperty(AcidTable table, String name) {
        if (!NOT_PROPERTIES.contains(name) || name.equals(TableCatalog.PROP_COMMENT)) return;
        throw new AcidException("UNSUPPORTED", "The " + name + " of " + table.fullName() + " cannot be changed: its files, which "
            + "its transactions have written, stay where they are. INSERT its rows into a new table.");
    }

    /** Returns the column before the position: "" for the first place, null where the statement names no place. */
    private static String after(TableChange.ColumnPosition position) {
        if (position instanceof TableChange.After after) return AcidCatalogBase.lower(after.column());
        return position instanceof TableChange.First ? "" : null;
    }

    private static String path(String[] names) {
        return AcidCatalogBase.lower(String.join(".", names));
    }
}
