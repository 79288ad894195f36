package transactionmetastore.spark.table;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.ColumnDefaultValue;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import transactionmetastore.spark.internals.DeclaredTexts;
import transactionmetastore.spark.plain.PlainStorage;

/** The planner's description of a table: metastore/planner/tables.py. */
public record TableDefinition(
        String db, String table, String kind, String id, String location, PlainStorage storage, List<Field> columns,
        List<Field> partitionKeys, List<String> primaryKey, Buckets buckets, Map<String, String> properties, String comment, String owner, Long rows,
        Long bytes) {

    /**
     * A column. "type": in Hive's text, "sqlType": of its values, with STRING for CHAR and VARCHAR. Any column may hold
     * NULLs, even if it is declared NOT NULL: see RowRules.
     */
    public record Field(String name, String type, DataType sqlType, String comment, String defaultValue) {
        Column column() {
            Metadata told = field().metadata();
            return Column.create(name, sqlType, true, comment, initially(), told.equals(Metadata.empty()) ? null : told.json());
        }

        Column declared(boolean isNullable) {
            return Column.create(name, DataType.fromDDL(type), isNullable, comment, initially(), null);
        }

        private ColumnDefaultValue initially() {
            return defaultValue == null ? null : new ColumnDefaultValue(defaultValue, LiteralValue.apply(null, sqlType));
        }

        /**
         * Returns the column as in Spark's plans: STRING with a declared CHAR or VARCHAR as metadata, by which Spark's
         * rules pad values and check their length. A session may be set to ignore the declared type.
         */
        StructField field() {
            boolean isTold = type.contains("char(") && !SQLConf.get().charVarcharAsString();
            StructType declared = new StructType().add(name, isTold ? DataType.fromDDL(type) : sqlType);
            return new StructField(name, sqlType, true, DeclaredTexts.asStrings(declared).apply(0).metadata());
        }
    }

    /** The distribution of rows over files, and their order in each file. "count" is 0 in a table without buckets. */
    public record Buckets(int count, List<String> columns, List<Sorted> sort, int version) {}

    /** A column by which files are sorted. */
    public record Sorted(String column, boolean ascends) implements Serializable {
        private static final long serialVersionUID = 1L;
    }

    public static TableDefinition of(String db, String table, JsonNode answer) {
        List<Field> columns = fields(answer.path("columns")), keys = fields(answer.path("partition_keys"));
        JsonNode buckets = answer.path("buckets"), statistics = answer.path("statistics");
        List<String> bucketColumns = new ArrayList<>();
        List<String> primaryKey = new ArrayList<>();
        List<Sorted> sort = new ArrayList<>();
        answer.path("primary_key").forEach(column -> primaryKey.add(column.asText()));
        buckets.path("columns").forEach(column -> bucketColumns.add(column.asText()));
        buckets.path("sort").forEach(column -> sort.add(new Sorted(column.path(0).asText(), column.path(1).asText().equals("asc"))));
        Map<String, String> properties = new HashMap<>();
        answer.path("properties").properties().forEach(property -> properties.put(property.getKey(), property.getValue().asText()));
        return new TableDefinition(
            db, table, answer.path("kind").asText(), answer.path("id").asText(), answer.path("location").asText(),
            PlainStorage.of(answer.path("format"), answer.path("storage")), columns, keys, primaryKey,
            new Buckets(buckets.path("count").asInt(0), bucketColumns, sort, buckets.path("version").asInt(2)),
            properties, text(answer.path("comment")), text(answer.path("owner")), number(statistics.path("rows")),
            number(statistics.path("bytes")));
    }

    private static List<Field> fields(JsonNode columns) {
        List<Field> fields = new ArrayList<>();
        for (JsonNode column : columns) {
            fields.add(new Field(
                column.path("name").asText(), column.path("type").asText(), DataType.fromDDL(column.path("sql_type").asText()),
                text(column.path("comment")), text(column.path("default"))));
        }
        return fields;
    }

    private static String text(JsonNode value) {
        return value.isNull() || value.isMissingNode() ? null : value.asText();
    }

    private static Long number(JsonNode value) {
        return value.isNumber() ? Long.valueOf(value.asLong()) : null;
    }

    /** Returns "db.table", as the metastore names the table. */
    public String name() {
        return db + "." + table;
    }

    /** Returns the arguments that name the table in a call to the planner. */
    public Map<String, String> dbAndTable() {
        return Map.of("db", db, "table", table);
    }

    /** Returns the properties that decide about the table's files: the planner refuses a write when they have changed. */
    public Map<String, Object> known() {
        List<Object> placed = new ArrayList<>(List.of(buckets.count));
        placed.addAll(buckets.columns);
        return Map.of("columns", typed(columns), "partition_keys", typed(partitionKeys), "buckets", placed);
    }

    /**
     * Returns the columns with one of these names, with their types: the planner refuses a read when one is gone or has
     * another type.
     */
    public List<List<String>> known(Collection<String> names) {
        return typed(Stream.concat(columns.stream(), partitionKeys.stream()).filter(field -> names.contains(field.name)).toList());
    }

    private static List<List<String>> typed(List<Field> fields) {
        return fields.stream().map(field -> List.of(field.name, field.type)).toList();
    }

    public boolean isFullAcid() {
        return kind.equals("full_acid");
    }

    /** Returns the columns in the files. */
    public StructType rowType() {
        return type(columns);
    }

    public StructType partitionType() {
        return type(partitionKeys);
    }

    private static StructType type(List<Field> fields) {
        StructType type = new StructType();
        for (Field field : fields) type = type.add(field.field());
        return type;
    }

    public Column[] allColumns() {
        return all(Field::column);
    }

    public Column[] declaredColumns(boolean areNullable) {
        return all(field -> field.declared(areNullable));
    }

    private Column[] all(Function<Field, Column> column) {
        return Stream.concat(columns.stream(), partitionKeys.stream()).map(column).toArray(Column[]::new);
    }

    public Transform[] partitioning() {
        List<Transform> all = new ArrayList<>();
        for (Field field : partitionKeys) all.add(Expressions.identity(WriterFunction.quoted(field.name)));
        return all.toArray(new Transform[0]);
    }
}
