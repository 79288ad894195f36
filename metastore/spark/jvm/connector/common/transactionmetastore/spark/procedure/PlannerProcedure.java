package transactionmetastore.spark.procedure;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;
import transactionmetastore.spark.internals.Rows;
import transactionmetastore.spark.planner.PlannerClient;
import transactionmetastore.spark.txn.AcidTransaction;
import transactionmetastore.spark.txn.SessionBlock;
/**
 * A procedure that the planner describes. Arguments go to the planner, and rows come back. The planner may also ask for a
 * statement to be run first, or for a query whose row it needs.
 */
final class PlannerProcedure implements UnboundProcedure, BoundProcedure {
    private static final Duration LONGEST = Duration.ofDays(1);  // a call may wait for a compaction
    private static final long MICROS = 1000;

    private final String catalog;
    private final PlannerClient planner;
    private final SessionBlock block;
    private final JsonNode description;
    private final StructType columns;

    PlannerProcedure(String catalog, PlannerClient planner, SessionBlock block, JsonNode description) {
        this.catalog = catalog;
        this.planner = planner;
        this.block = block;
        this.description = description;
        StructType type = new StructType();
        for (JsonNode column : description.path("columns")) {
            type = type.add(column.path("name").asText(), DataType.fromDDL(column.path("type").asText()));
        }
        this.columns = type;
    }

    @Override
    public String name() {
        return description.path("name").asText();
    }

    @Override
    public String description() {
        return description.path("comment").asText();
    }

    @Override
    public BoundProcedure bind(StructType arguments) {
        return this;
    }

    @Override
    public ProcedureParameter[] parameters() {
        List<ProcedureParameter> parameters = new ArrayList<>();
        for (JsonNode declared : description.path("parameters")) {
            ProcedureParameter.Builder parameter = ProcedureParameter
                .in(declared.path("name").asText(), DataType.fromDDL(declared.path("type").asText()))
                .comment(declared.path("comment").asText());
            if (!declared.path("default").isNull()) parameter = parameter.defaultValue(declared.path("default").asText());
            parameters.add(parameter.build());
        }
        return parameters.toArray(new ProcedureParameter[0]);
    }

    @Override
    public boolean isDeterministic() {
        return false;
    }

    @Override
    public Iterator<Scan> call(InternalRow values) {
        Map<String, Object> arguments = new HashMap<>();
        ProcedureParameter[] parameters = parameters();
        for (int place = 0; place < parameters.length; ++place) {
            DataType type = parameters[place].dataType();
            arguments.put(parameters[place].name(), values.isNullAt(place) ? null : argument(values.get(place, type), type));
        }
        Map<String, Object> whole = new HashMap<>(AcidTransaction.caller());
        whole.put("procedure", name());
        whole.put("catalog", catalog);
        if (SparkSession.active().catalog().currentCatalog().equals(catalog)) whole.put("database", currentDatabase());
        whole.put("arguments", arguments);
        JsonNode answer = planner.call("procedure", whole, LONGEST);
        if (answer.path("statement").isTextual()) SparkSession.active().sql(answer.path("statement").asText());
        if (answer.path("query").isObject()) send(answer.path("query"));
        List<InternalRow> rows = new ArrayList<>();
        for (JsonNode row : answer.path("rows")) rows.add(row(row));
        return Collections.<Scan>singletonList(new Answer(columns, rows.toArray(new InternalRow[0]))).iterator();
    }

    /** Returns the session's current database. Spark quotes a name like 2024. */
    private static String currentDatabase() {
        return SparkSession.active().catalog().currentDatabase().replace("`", "");
    }

    /**
     * Sends the only row of a query, whose columns are texts, to the planner's call. A block refuses this, since its
     * changes are not committed yet.
     */
    private void send(JsonNode query) {
        block.requireNone("What CALL system." + name() + " reads is noted");
        Row row = SparkSession.active().sql(query.path("sql").asText()).head();
        List<Object> texts = new ArrayList<>();
        for (int place = 0; place < row.length(); ++place) texts.add(row.get(place));
        Map<String, Object> whole = new HashMap<>(AcidTransaction.caller());
        query.path("arguments").properties().forEach(argument -> whole.put(argument.getKey(), argument.getValue()));
        whole.put("row", texts);
        planner.call(query.path("call").asText(), whole);
    }

    private static Object argument(Object value, DataType type) {
        if (value instanceof UTF8String text) return text.toString();
        if (type instanceof TimestampType) return Math.floorDiv((Long) value, MICROS);
        if (!(value instanceof ArrayData array)) return value;
        DataType element = ((ArrayType) type).elementType();
        List<Object> values = new ArrayList<>();
        for (int place = 0; place < array.numElements(); ++place) {
            values.add(array.isNullAt(place) ? null : argument(array.get(place, element), element));
        }
        return values;
    }

    private InternalRow row(JsonNode values) {
        Object[] row = new Object[columns.length()];
        for (int place = 0; place < row.length; ++place) row[place] = value(values.path(place), columns.fields()[place].dataType());
        return Rows.of(row);
    }

    private static Object value(JsonNode value, DataType type) {
        if (value.isNull()) return null;
        if (type instanceof StringType) return UTF8String.fromString(value.asText());
        if (type instanceof LongType) return value.asLong();
        if (type instanceof BooleanType) return value.asBoolean();
        if (type instanceof TimestampType) return value.asLong() * MICROS;
        throw new IllegalArgumentException("A procedure answers no " + type.sql());
    }

    private record Answer(StructType readSchema, InternalRow[] rows) implements LocalScan {}
}
