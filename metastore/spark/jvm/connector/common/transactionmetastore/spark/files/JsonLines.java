package transactionmetastore.spark.files;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.Date;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.serde2.AbstractSerDe;
import org.apache.hadoop.hive.serde2.SerDeException;
import org.apache.hadoop.hive.serde2.SerDeStats;
import org.apache.hadoop.hive.serde2.objectinspector.ListObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.MapObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.PrimitiveObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.StructField;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.hive.serde2.typeinfo.DecimalTypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.HiveDecimalUtils;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoFactory;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hive.common.util.HiveStringUtils;
import org.apache.hive.common.util.TimestampParser;

/**
 * A SerDe of lines that are JSON objects. It replaces Hive's two JsonSerDes where Spark lacks them.
 *
 * It reads the same values as Hive 4's: fields are matched by name in any case, or as "_col" and their position; fields
 * without a column are skipped. Both of Hive's SerDes read its output. Hive reads numbers through doubles, so a decimal
 * that is no double is written as a text; so is -0.0, which decimals do not have.
 */
public class JsonLines extends AbstractSerDe {
    private final ObjectMapper mapper =
        new ObjectMapper().configure(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS, true);
    private final Map<Object, Map<String, Integer>> places = new IdentityHashMap<>();
    private StructObjectInspector rows;
    private TimestampParser timestamps;
    private boolean isBase64, isEmptyNull;

    @Override
    @SuppressWarnings("deprecation")  // the other method is not in the Hive of every Spark
    public void initialize(Configuration settings, Properties table) {
        String names = table.getProperty("columns");
        List<String> columns = new ArrayList<>();
        for (String name : names.split(table.getProperty("column.name.delimiter", ","))) columns.add(name);
        rows = (StructObjectInspector) TypeInfoUtils.getStandardJavaObjectInspectorFromTypeInfo(
            TypeInfoFactory.getStructTypeInfo(
                columns, TypeInfoUtils.getTypeInfosFromTypeString(table.getProperty("columns.types"))));
        String formats = table.getProperty("timestamp.formats");
        timestamps = formats == null ? new TimestampParser()
            : new TimestampParser(HiveStringUtils.splitAndUnEscape(formats));
        isBase64 = table.getProperty("json.binary.format", "base64").equalsIgnoreCase("base64");
        isEmptyNull = Boolean.parseBoolean(table.getProperty("text.null.empty.line", "false"));
    }

    @Override
    public ObjectInspector getObjectInspector() {
        return rows;
    }

    @Override
    public Class<? extends Writable> getSerializedClass() {
        return Text.class;
    }

    @Override
    public SerDeStats getSerDeStats() {
        return null;
    }

    @Override
    public Object deserialize(Writable record) throws SerDeException {
        Text line = (Text) record;
        if (line.getLength() == 0) {
            if (isEmptyNull) return Arrays.asList(new Object[rows.getAllStructFieldRefs().size()]);
            throw new SerDeException("An empty line is no JSON object; with text.null.empty.line it is a row of NULLs");
        }
        try {
            Object read = mapper.readTree(line.getBytes(), 0, line.getLength());
            return value((JsonNode) read, rows);
        } catch (IOException error) {
            throw new SerDeException("A line is no JSON object: " + error.getMessage());
        }
    }

    private Object value(JsonNode node, ObjectInspector type) throws SerDeException, IOException {
        if (node == null || node.isNull() || node.isMissingNode()) return null;
        if (type instanceof PrimitiveObjectInspector) return primitive(node, (PrimitiveObjectInspector) type);
        if (type instanceof ListObjectInspector) {
            require(node.isArray(), "array", node);
            List<Object> values = new ArrayList<>();
            ObjectInspector element = ((ListObjectInspector) type).getListElementObjectInspector();
            for (JsonNode member : node) values.add(value(member, element));
            return values;
        }
        require(node.isObject(), "object", node);
        Iterator<?> names = node.fieldNames();
        if (type instanceof MapObjectInspector) {
            MapObjectInspector map = (MapObjectInspector) type;
            Map<Object, Object> entries = new LinkedHashMap<>();
            while (names.hasNext()) {
                String name = (String) names.next();
                entries.put(value(new TextNode(name), map.getMapKeyObjectInspector()),
                          value(child(node, name), map.getMapValueObjectInspector()));
            }
            return entries;
        }
        List<?> fields = ((StructObjectInspector) type).getAllStructFieldRefs();
        Object[] values = new Object[fields.size()];
        while (names.hasNext()) {
            String name = (String) names.next();
            Integer place = place(name, (StructObjectInspector) type);
            if (place == null) continue;
            values[place.intValue()] = value(
                child(node, name), ((StructField) fields.get(place.intValue())).getFieldObjectInspector());
        }
        return Arrays.asList(values);
    }

    private static JsonNode child(JsonNode node, String name) {
        Object child = node.get(name);
        return (JsonNode) child;
    }

    private Integer place(String name, StructObjectInspector struct) {
        Object byName = places.get(struct);
        if (byName == null) {
            Map<String, Integer> known = new HashMap<>();
            List<?> fields = struct.getAllStructFieldRefs();
            for (int at = 0; at < fields.size(); ++at) known.put("_col" + at, Integer.valueOf(at));
            for (int at = 0; at < fields.size(); ++at) {
                known.put(((StructField) fields.get(at)).getFieldName().toLowerCase(Locale.ROOT), Integer.valueOf(at));
            }
            places.put(struct, known);
            byName = known;
        }
        return (Integer) ((Map<?, ?>) byName).get(name.toLowerCase(Locale.ROOT));
    }

    private Object primitive(JsonNode node, PrimitiveObjectInspector type) throws SerDeException, IOException {
        require(node.isValueNode(), type.getTypeName(), node);
        String kind = type.getPrimitiveCategory().name();
        if (kind.equals("STRING")) return node.isBigDecimal() ? Double.toString(node.doubleValue()) : node.asText();
        if (kind.equals("INT")) return Integer.valueOf(node.asInt());
        if (kind.equals("LONG")) return Long.valueOf(node.asLong());
        if (kind.equals("SHORT")) return Short.valueOf((short) node.asInt());
        if (kind.equals("BYTE")) return Byte.valueOf((byte) node.asInt());
        if (kind.equals("BOOLEAN")) return Boolean.valueOf(node.asBoolean());
        if (kind.equals("DOUBLE")) return Double.valueOf(node.asDouble());
        if (kind.equals("FLOAT")) return Float.valueOf((float) node.asDouble());
        if (kind.equals("DATE")) return Date.valueOf(node.asText());
        if (kind.equals("TIMESTAMP")) return timestamps.parseTimestamp(node.asText());
        if (kind.equals("BINARY")) {
            return isBase64 ? node.binaryValue() : node.asText().getBytes(StandardCharsets.UTF_8);
        }
        if (kind.equals("DECIMAL")) {
            HiveDecimal decimal = HiveDecimal.create(node.isNumber() ? node.decimalValue() : new BigDecimal(node.asText()));
            return decimal == null ? null
                : HiveDecimalUtils.enforcePrecisionScale(decimal, (DecimalTypeInfo) type.getTypeInfo());
        }
        throw new SerDeException("JSON has no values of the type " + type.getTypeName());
    }

    private static void require(boolean isSo, String wanted, JsonNode node) throws SerDeException {
        if (!isSo) throw new SerDeException("There is " + node.getNodeType() + " in the place of a value of " + wanted);
    }

    @Override
    public Writable serialize(Object row, ObjectInspector type) throws SerDeException {
        try {
            return new Text(mapper.writeValueAsString(node(row, type)));
        } catch (IOException error) {
            throw new SerDeException(error);
        }
    }

    private JsonNode node(Object value, ObjectInspector type) throws SerDeException {
        JsonNodeFactory nodes = JsonNodeFactory.instance;
        if (value == null) return nodes.nullNode();
        if (type instanceof PrimitiveObjectInspector) return leaf(value, (PrimitiveObjectInspector) type);
        if (type instanceof ListObjectInspector) {
            ListObjectInspector list = (ListObjectInspector) type;
            ArrayNode made = nodes.arrayNode();
            for (int place = 0; place < list.getListLength(value); ++place) {
                made.add(node(list.getListElement(value, place), list.getListElementObjectInspector()));
            }
            return made;
        }
        ObjectNode made = nodes.objectNode();
        if (type instanceof MapObjectInspector) {
            MapObjectInspector map = (MapObjectInspector) type;
            for (Map.Entry<?, ?> entry : map.getMap(value).entrySet()) {
                made.set(node(entry.getKey(), map.getMapKeyObjectInspector()).asText(),
                         node(entry.getValue(), map.getMapValueObjectInspector()));
            }
            return made;
        }
        StructObjectInspector struct = (StructObjectInspector) type;
        List<?> fields = struct.getAllStructFieldRefs();
        for (int place = 0; place < fields.size(); ++place) {
            StructField field = (StructField) fields.get(place);
            made.set(field.getFieldName(), node(struct.getStructFieldData(value, field), field.getFieldObjectInspector()));
        }
        return made;
    }

    private JsonNode leaf(Object object, PrimitiveObjectInspector type) {
        JsonNodeFactory nodes = JsonNodeFactory.instance;
        Object value = type.getPrimitiveJavaObject(object);
        if (value instanceof Integer) return nodes.numberNode(((Integer) value).intValue());
        if (value instanceof Long) return nodes.numberNode(((Long) value).longValue());
        if (value instanceof Short) return nodes.numberNode(((Short) value).shortValue());
        if (value instanceof Byte) return nodes.numberNode(((Byte) value).byteValue());
        if (value.equals(Double.valueOf(-0.0)) || value.equals(Float.valueOf(-0.0f))) return nodes.textNode("-0.0");
        if (value instanceof Double) return nodes.numberNode(((Double) value).doubleValue());
        if (value instanceof Float) return nodes.numberNode(((Float) value).floatValue());
        if (value instanceof Boolean) return nodes.booleanNode(((Boolean) value).booleanValue());
        if (value instanceof byte[]) {
            return isBase64 ? (JsonNode) nodes.binaryNode((byte[]) value)
                : nodes.textNode(new String((byte[]) value, StandardCharsets.UTF_8));
        }
        if (value instanceof HiveDecimal) {
            BigDecimal exact = ((HiveDecimal) value).bigDecimalValue();
            boolean isDouble = new BigDecimal(Double.toString(exact.doubleValue())).compareTo(exact) == 0;
            return isDouble ? (JsonNode) nodes.numberNode(exact) : nodes.textNode(exact.toPlainString());
        }
        return nodes.textNode(value.toString());
    }
}
