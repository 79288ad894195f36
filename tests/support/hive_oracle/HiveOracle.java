import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.common.ValidCompactorTxnList;
import org.apache.hadoop.hive.common.ValidCompactorWriteIdList;
import org.apache.hadoop.hive.common.ValidReadTxnList;
import org.apache.hadoop.hive.common.ValidReaderWriteIdList;
import org.apache.hadoop.hive.common.ValidTxnList;
import org.apache.hadoop.hive.common.ValidWriteIdList;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.io.AcidInputFormat;
import org.apache.hadoop.hive.ql.io.AcidOutputFormat;
import org.apache.hadoop.hive.ql.io.AcidUtils;
import org.apache.hadoop.hive.ql.io.RecordIdentifier;
import org.apache.hadoop.hive.ql.io.RecordUpdater;
import org.apache.hadoop.hive.ql.io.orc.OrcInputFormat;
import org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat;
import org.apache.hadoop.hive.ql.io.orc.OrcStruct;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorFactory;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorUtils;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoFactory;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hive.common.util.Murmur3;

/**
 * Hive 2.3's own reader and rules, asked over stdin: one JSON request a line, one JSON answer a line.
 * Only code of Hive decides; this file converts.
 */
public class HiveOracle {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    PrintStream answers = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), true, "UTF-8");
    System.setOut(System.err); // Hive prints where it likes
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      ObjectNode answer = JSON.createObjectNode();
      try {
        JsonNode request = JSON.readTree(line);
        answer.set("answer", answer(request));
      } catch (Throwable problem) {
        StringWriter trace = new StringWriter();
        problem.printStackTrace(new PrintWriter(trace));
        answer.put("error", String.valueOf(problem.getMessage()));
        answer.put("trace", trace.toString());
      }
      answers.println(JSON.writeValueAsString(answer));
    }
  }

  private static JsonNode answer(JsonNode request) throws Exception {
    switch (request.get("question").asText()) {
      case "state": return state(request);
      case "rows": return rows(request);
      case "events": return events(request);
      case "write": return write(request);
      case "stream": return stream(request);
      case "names": return names(request);
      case "hash": return hash(request);
      case "murmur": return JSON.getNodeFactory().numberNode(Murmur3.hash32(request.get("bytes").binaryValue()));
      case "write_ids": return writeIds(request);
      default: throw new IllegalArgumentException("unknown question " + request);
    }
  }

  private static ValidTxnList snapshot(JsonNode request) {
    if (request.has("compactor")) {
      return new ValidCompactorTxnList(longs(request.get("aborted")), request.get("compactor").asLong());
    }
    return new ValidReadTxnList(request.get("snapshot").asText());
  }

  private static long[] longs(JsonNode array) {
    long[] result = new long[array.size()];
    for (int i = 0; i < result.length; i++) {
      result[i] = array.get(i).asLong();
    }
    return result;
  }

  private static JsonNode state(JsonNode request) throws Exception {
    AcidUtils.Directory found =
        AcidUtils.getAcidState(new Path(request.get("directory").asText()), new Configuration(), snapshot(request));
    ObjectNode answer = JSON.createObjectNode();
    answer.put("base", found.getBaseDirectory() == null ? null : found.getBaseDirectory().getName());
    ArrayNode deltas = answer.putArray("deltas");
    for (AcidUtils.ParsedDelta delta : found.getCurrentDirectories()) {
      deltas.add(delta.getPath().getName());
    }
    ArrayNode originals = answer.putArray("originals");
    found.getOriginalFiles().forEach(file -> originals.add(file.getFileStatus().getPath().getName()));
    ArrayNode obsolete = answer.putArray("obsolete");
    for (FileStatus status : found.getObsolete()) {
      obsolete.add(status.getPath().getName());
    }
    return answer;
  }

  private static JobConf job(JsonNode request) {
    JobConf job = new JobConf();
    String names = request.get("columns").asText();
    String types = request.get("types").asText();
    StringBuilder ids = new StringBuilder("0");
    for (int i = 1; i < names.split(",").length; i++) {
      ids.append(",").append(i);
    }
    job.set("transactional", "true");
    job.set("transactional_properties", "default");
    job.set("hive.txn.operational.properties", "1");
    job.set("hive.transactional.table.scan", "true");
    job.set("columns", names);
    job.set("columns.types", types);
    job.set("schema.evolution.columns", names);
    job.set("schema.evolution.columns.types", types);
    job.set("hive.io.file.readcolumn.ids", ids.toString());
    job.set("hive.io.file.readcolumn.names", names);
    job.set("hive.io.file.read.all.columns", "false");
    job.set("hive.exec.orc.split.strategy", "ETL");
    job.set("mapreduce.input.fileinputformat.inputdir", "file:" + request.get("directory").asText());
    job.set("mapred.input.dir", "file:" + request.get("directory").asText());
    if (request.has("split_size")) {
      job.set("mapreduce.input.fileinputformat.split.maxsize", request.get("split_size").asText());
      job.set("mapreduce.input.fileinputformat.split.minsize", "1");
    }
    return job;
  }

  private static JsonNode rows(JsonNode request) throws Exception {
    JobConf job = job(request);
    job.set("hive.txn.valid.txns", request.get("snapshot").asText());
    OrcInputFormat format = new OrcInputFormat();
    ObjectNode answer = JSON.createObjectNode();
    ArrayNode rows = answer.putArray("rows");
    InputSplit[] splits = format.getSplits(job, 1);
    answer.put("splits", splits.length);
    for (InputSplit split : splits) {
      AcidInputFormat.RowReader<OrcStruct> reader = format.getReader(split, new AcidInputFormat.Options(job));
      RecordIdentifier key = reader.createKey();
      OrcStruct value = reader.createValue();
      while (reader.next(key, value)) {
        ObjectNode row = rows.addObject();
        putKey(row, key);
        row.set("row", plain(ObjectInspectorUtils.copyToStandardJavaObject(value, reader.getObjectInspector())));
      }
      reader.close();
    }
    return answer;
  }

  /** The compactor's view: every event of one bucket in order, or one event per row when collapsed. */
  private static JsonNode events(JsonNode request) throws Exception {
    JobConf job = job(request);
    ArrayNode result = JSON.createArrayNode();
    List<Path> deltas = new ArrayList<>();
    request.get("deltas").forEach(path -> deltas.add(new Path(path.asText())));
    Path base = request.hasNonNull("base") ? new Path(request.get("base").asText()) : null;
    AcidInputFormat.RawReader<OrcStruct> reader = new OrcInputFormat().getRawReader(job,
        request.get("collapse").asBoolean(), request.get("bucket").asInt(), snapshot(request), base,
        deltas.toArray(new Path[0]));
    RecordIdentifier key = reader.createKey();
    OrcStruct value = reader.createValue();
    while (reader.next(key, value)) {
      ObjectNode event = result.addObject();
      putKey(event, key);
      event.put("delete", reader.isDelete(value));
      event.set("event", plain(ObjectInspectorUtils.copyToStandardJavaObject(value, reader.getObjectInspector())));
    }
    reader.close();
    return result;
  }

  private static void putKey(ObjectNode row, RecordIdentifier key) {
    row.putArray("id").add(key.getTransactionId()).add(key.getBucketId()).add(key.getRowId());
  }

  /** Write a delta with Hive's own writer: rows to insert, ids to delete. */
  private static JsonNode write(JsonNode request) throws Exception {
    String[] names = request.get("columns").asText().split(",");
    List<String> columns = List.of(names);
    List<ObjectInspector> inspectors = new ArrayList<>();
    List<TypeInfo> types = TypeInfoUtils.getTypeInfosFromTypeString(request.get("types").asText());
    for (TypeInfo type : types) {
      inspectors.add(TypeInfoUtils.getStandardJavaObjectInspectorFromTypeInfo(type));
    }
    JobConf job = job(request);
    java.util.Properties table = new java.util.Properties();
    table.setProperty("columns", request.get("columns").asText());
    table.setProperty("columns.types", request.get("types").asText());
    table.setProperty("transactional", "true");
    table.setProperty("transactional_properties", "default");
    long writeId = request.get("write_id").asLong();
    AcidOutputFormat.Options options = new AcidOutputFormat.Options(job)
        .inspector(ObjectInspectorFactory.getStandardStructObjectInspector(
            withId(columns), withIdInspector(inspectors)))
        .minimumTransactionId(writeId).maximumTransactionId(writeId)
        .statementId(request.get("statement_id").asInt()).bucket(request.get("bucket").asInt())
        .writingBase(false).tableProperties(table).recordIdColumn(columns.size());
    RecordUpdater updater =
        new OrcOutputFormat().getRecordUpdater(new Path(request.get("directory").asText()), options);
    for (JsonNode row : request.get("inserts")) {
      List<Object> values = new ArrayList<>();
      for (int i = 0; i < types.size(); i++) {
        values.add(javaValue(row.get(i), types.get(i)));
      }
      values.add(null);
      updater.insert(writeId, values);
    }
    for (JsonNode id : request.get("deletes")) {
      List<Object> values = new ArrayList<>();
      for (int i = 0; i < types.size(); i++) {
        values.add(null);
      }
      values.add(List.of(id.get(0).asLong(), id.get(1).asInt(), id.get(2).asLong()));
      updater.delete(writeId, values);
    }
    updater.close(false);
    return JSON.getNodeFactory().booleanNode(true);
  }

  /** A streaming writer's batch: each transaction's rows flushed with a side file; closed, or left as a crash leaves it. */
  private static JsonNode stream(JsonNode request) throws Exception {
    List<TypeInfo> types = TypeInfoUtils.getTypeInfosFromTypeString(request.get("types").asText());
    List<ObjectInspector> inspectors = new ArrayList<>();
    for (TypeInfo type : types) {
      inspectors.add(TypeInfoUtils.getStandardJavaObjectInspectorFromTypeInfo(type));
    }
    JobConf job = job(request);
    job.set("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem"); // the usual one flushes only when it closes
    job.set("fs.file.impl.disable.cache", "true");
    java.util.Properties table = new java.util.Properties();
    table.setProperty("columns", request.get("columns").asText());
    table.setProperty("columns.types", request.get("types").asText());
    table.setProperty("transactional", "true");
    table.setProperty("transactional_properties", "default");
    AcidOutputFormat.Options options = new AcidOutputFormat.Options(job)
        .inspector(ObjectInspectorFactory.getStandardStructObjectInspector(
            List.of(request.get("columns").asText().split(",")), inspectors))
        .minimumTransactionId(request.get("min").asLong()).maximumTransactionId(request.get("max").asLong())
        .statementId(-1).bucket(request.get("bucket").asInt()).writingBase(false).tableProperties(table);
    RecordUpdater updater =
        new OrcOutputFormat().getRecordUpdater(new Path(request.get("directory").asText()), options);
    long writeId = request.get("min").asLong();
    for (JsonNode rows : request.get("transactions")) {
      for (JsonNode row : rows) {
        List<Object> values = new ArrayList<>();
        for (int i = 0; i < types.size(); i++) {
          values.add(javaValue(row.get(i), types.get(i)));
        }
        updater.insert(writeId, values);
      }
      updater.flush();
      writeId++;
    }
    if (request.get("close").asBoolean()) {
      updater.close(false);
    }
    return JSON.getNodeFactory().booleanNode(true);
  }

  private static List<String> withId(List<String> columns) {
    List<String> result = new ArrayList<>(columns);
    result.add("row__id");
    return result;
  }

  private static List<ObjectInspector> withIdInspector(List<ObjectInspector> inspectors) {
    List<ObjectInspector> result = new ArrayList<>(inspectors);
    TypeInfo id = TypeInfoFactory.getStructTypeInfo(List.of("transactionId", "bucketId", "rowId"),
        List.of(TypeInfoFactory.longTypeInfo, TypeInfoFactory.intTypeInfo, TypeInfoFactory.longTypeInfo));
    result.add(TypeInfoUtils.getStandardJavaObjectInspectorFromTypeInfo(id));
    return result;
  }

  private static JsonNode names(JsonNode request) throws Exception {
    long low = request.get("min").asLong();
    long high = request.get("max").asLong();
    int bucket = request.get("bucket").asInt();
    int statement = request.get("statement").asInt();
    ObjectNode answer = JSON.createObjectNode();
    answer.put("base", AcidUtils.baseDir(high));
    answer.put("delta", AcidUtils.deltaSubdir(low, high));
    answer.put("statement_delta", AcidUtils.deltaSubdir(low, high, statement));
    answer.put("bucket", AcidUtils.createBucketFile(new Path("/t/" + AcidUtils.deltaSubdir(low, high)), bucket).getName());
    AcidUtils.ParsedDelta parsed = AcidUtils.parsedDelta(new Path("/t/" + request.get("parse").asText()));
    answer.putArray("parsed").add(parsed.getMinTransaction()).add(parsed.getMaxTransaction())
        .add(parsed.getStatementId()).add(parsed.isDeleteDelta());
    return answer;
  }

  private static JsonNode hash(JsonNode request) {
    List<TypeInfo> types = TypeInfoUtils.getTypeInfosFromTypeString(request.get("types").asText());
    Object[] values = new Object[types.size()];
    ObjectInspector[] inspectors = new ObjectInspector[types.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = javaValue(request.get("values").get(i), types.get(i));
      inspectors[i] = TypeInfoUtils.getStandardJavaObjectInspectorFromTypeInfo(types.get(i));
    }
    return JSON.getNodeFactory().numberNode(ObjectInspectorUtils.getBucketHashCode(values, inspectors));
  }

  private static JsonNode writeIds(JsonNode request) {
    String text = request.get("list").asText();
    ValidWriteIdList list =
        request.get("is_compactor").asBoolean() ? new ValidCompactorWriteIdList(text) : new ValidReaderWriteIdList(text);
    ObjectNode answer = JSON.createObjectNode();
    answer.put("text", list.toString());
    ArrayNode valid = answer.putArray("valid");
    ArrayNode aborted = answer.putArray("aborted");
    ArrayNode bases = answer.putArray("bases");
    for (long id = 0; id <= request.get("up_to").asLong(); id++) {
      valid.add(list.isWriteIdValid(id));
      aborted.add(list.isWriteIdAborted(id));
      bases.add(list.isValidBase(id));
    }
    ArrayNode ranges = answer.putArray("ranges");
    ArrayNode abortedRanges = answer.putArray("aborted_ranges");
    for (JsonNode range : request.get("ranges")) {
      long low = range.get(0).asLong();
      long high = range.get(1).asLong();
      ranges.add(list.isWriteIdRangeValid(low, high).name());
      abortedRanges.add(list.isWriteIdRangeAborted(low, high).name());
    }
    return answer;
  }

  private static Object javaValue(JsonNode value, TypeInfo type) {
    if (value == null || value.isNull()) {
      return null;
    }
    String name = type.getTypeName();
    if (name.startsWith("decimal")) {
      return HiveDecimal.create(new BigDecimal(value.asText()));
    }
    if (name.startsWith("varchar")) {
      return new org.apache.hadoop.hive.common.type.HiveVarchar(value.asText(), 65535);
    }
    if (name.startsWith("char")) {
      String length = name.substring(5, name.length() - 1);
      return new org.apache.hadoop.hive.common.type.HiveChar(value.asText(), Integer.parseInt(length));
    }
    switch (name) {
      case "boolean": return value.asBoolean();
      case "tinyint": return (byte) value.asInt();
      case "smallint": return (short) value.asInt();
      case "int": return value.asInt();
      case "bigint": return value.asLong();
      case "float": return (float) value.asDouble();
      case "double": return value.asDouble();
      case "string": return value.asText();
      case "binary":
        try {
          return value.binaryValue();
        } catch (java.io.IOException problem) {
          throw new IllegalArgumentException(problem);
        }
      case "date": return java.sql.Date.valueOf(value.asText());
      case "timestamp": return java.sql.Timestamp.valueOf(value.asText());
      default: break;
    }
    if (name.startsWith("array<")) {
      TypeInfo element = ((org.apache.hadoop.hive.serde2.typeinfo.ListTypeInfo) type).getListElementTypeInfo();
      List<Object> list = new ArrayList<>();
      value.forEach(item -> list.add(javaValue(item, element)));
      return list;
    }
    if (name.startsWith("map<")) {
      TypeInfo keyType = ((org.apache.hadoop.hive.serde2.typeinfo.MapTypeInfo) type).getMapKeyTypeInfo();
      TypeInfo valueType = ((org.apache.hadoop.hive.serde2.typeinfo.MapTypeInfo) type).getMapValueTypeInfo();
      Map<Object, Object> map = new java.util.LinkedHashMap<>();
      value.forEach(pair -> map.put(javaValue(pair.get(0), keyType), javaValue(pair.get(1), valueType)));
      return map;
    }
    if (name.startsWith("struct<")) {
      List<TypeInfo> types = ((org.apache.hadoop.hive.serde2.typeinfo.StructTypeInfo) type).getAllStructFieldTypeInfos();
      List<Object> fields = new ArrayList<>();
      for (int i = 0; i < types.size(); i++) {
        fields.add(javaValue(value.get(i), types.get(i)));
      }
      return fields;
    }
    throw new IllegalArgumentException("no conversion to " + name);
  }

  private static JsonNode plain(Object value) {
    if (value == null) {
      return JSON.nullNode();
    }
    if (value instanceof List) {
      ArrayNode result = JSON.createArrayNode();
      ((List<?>) value).forEach(item -> result.add(plain(item)));
      return result;
    }
    if (value instanceof Map) {
      ArrayNode result = JSON.createArrayNode();
      ((Map<?, ?>) value).forEach((key, item) -> result.addArray().add(plain(key)).add(plain(item)));
      return result;
    }
    if (value instanceof Number || value instanceof Boolean || value instanceof byte[]) {
      return JSON.valueToTree(value);
    }
    return JSON.getNodeFactory().textNode(value.toString());
  }
}
