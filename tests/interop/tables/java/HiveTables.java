import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.common.ValidCompactorWriteIdList;
import org.apache.hadoop.hive.common.ValidReaderWriteIdList;
import org.apache.hadoop.hive.common.ValidWriteIdList;
import org.apache.hadoop.hive.common.type.DataTypePhysicalVariation;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.hive.ql.exec.vector.VectorExtractRow;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatchCtx;
import org.apache.hadoop.hive.ql.io.AcidDirectory;
import org.apache.hadoop.hive.ql.io.AcidInputFormat;
import org.apache.hadoop.hive.ql.io.AcidOutputFormat;
import org.apache.hadoop.hive.ql.io.AcidUtils;
import org.apache.hadoop.hive.ql.io.HiveInputFormat;
import org.apache.hadoop.hive.ql.io.RecordIdentifier;
import org.apache.hadoop.hive.ql.io.RecordUpdater;
import org.apache.hadoop.hive.ql.io.orc.OrcInputFormat;
import org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat;
import org.apache.hadoop.hive.ql.io.orc.OrcRawRecordMerger;
import org.apache.hadoop.hive.ql.io.orc.OrcStruct;
import org.apache.hadoop.hive.ql.metadata.VirtualColumn;
import org.apache.hadoop.hive.ql.plan.MapWork;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorFactory;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorUtils;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.RecordReader;
import org.apache.hadoop.mapred.Reporter;
import org.apache.hive.common.util.Ref;

/**
 * Hive 4's own readers and writer, asked over stdin: one JSON request a line, one JSON answer a line.
 * Only code of Hive decides; this file converts.
 */
public class HiveTables {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
    System.setOut(System.err); // Hive prints where it likes
    answers.println("{\"answer\": \"ready\"}");
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      ObjectNode answer = JSON.createObjectNode();
      try {
        answer.set("answer", answer(JSON.readTree(line)));
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
      case "rows": return rows(request);
      case "vectorized": return vectorized(request);
      case "write": return write(request);
      case "state": return state(request);
      default: throw new IllegalArgumentException("unknown question " + request);
    }
  }

  private static JobConf job(JsonNode request) {
    JobConf job = new JobConf();
    String names = request.get("columns").asText();
    String types = request.get("types").asText();
    String ids = "0";
    for (int i = 1; i < names.split(",").length; i++) {
      ids += "," + i;
    }
    job.set("columns", names);
    job.set("columns.types", types);
    job.set("schema.evolution.columns", names);
    job.set("schema.evolution.columns.types", types);
    job.set("hive.io.file.readcolumn.ids", ids);
    job.set("hive.io.file.readcolumn.names", names);
    job.set("hive.io.file.read.all.columns", "false");
    job.set("hive.exec.orc.split.strategy", "ETL");
    job.set("hive.txn.valid.writeids", request.path("write_ids").asText());
    job.set("hive.txn.valid.txns", request.path("txns").asText());
    request.path("conf").fields().forEachRemaining(one -> job.set(one.getKey(), one.getValue().asText()));
    return job;
  }

  /** What HiveInputFormat does before it asks for splits: full ACID leaves the choice of files to OrcInputFormat. */
  private static JobConf scan(JsonNode request) throws Exception {
    if (!isInsertOnly(request)) {
      return acidJob(request);
    }
    JobConf job = job(request);
    job.set("transactional", "true");
    job.set("transactional_properties", "insert_only");
    List<Path> chosen = new ArrayList<>();
    HiveInputFormat.processPathsForMmRead(List.of(new Path(request.get("directory").asText())), job,
        new ValidReaderWriteIdList(request.get("write_ids").asText()), chosen, null);
    from(job, chosen.stream().map(Path::toString).collect(Collectors.joining(",")));
    job.setBoolean("mapreduce.input.fileinputformat.input.dir.recursive", true);
    return job;
  }

  private static boolean isInsertOnly(JsonNode request) {
    return request.path("insert_only").asBoolean();
  }

  private static InputSplit[] splits(JobConf job, OrcInputFormat format) throws Exception {
    return job.get("mapreduce.input.fileinputformat.inputdir").isEmpty() ? new InputSplit[0] : format.getSplits(job, 1);
  }

  private static JobConf acidJob(JsonNode request) {
    JobConf job = job(request);
    job.set("transactional", "true");
    job.set("transactional_properties", "default");
    job.set("hive.txn.operational.properties", "1");
    job.set("hive.transactional.table.scan", "true");
    from(job, request.get("directory").asText());
    return job;
  }

  private static void from(JobConf job, String directories) {
    job.set("mapreduce.input.fileinputformat.inputdir", directories);
    job.set("mapred.input.dir", directories);
  }

  /** Row by row: OrcInputFormat's splits, OrcRawRecordMerger below. */
  private static JsonNode rows(JsonNode request) throws Exception {
    JobConf job = scan(request);
    OrcInputFormat format = new OrcInputFormat();
    InputSplit[] splits = splits(job, format);
    ObjectNode answer = JSON.createObjectNode().put("splits", splits.length);
    ArrayNode rows = answer.putArray("rows");
    for (InputSplit split : splits) {
      if (isInsertOnly(request)) {
        plainRows(job, request, format.getRecordReader(split, job, Reporter.NULL), rows);
        continue;
      }
      AcidInputFormat.RowReader<OrcStruct> reader = format.getReader(split, new AcidInputFormat.Options(job));
      OrcRawRecordMerger.ReaderKey key = reader.createKey();
      OrcStruct value = reader.createValue();
      while (reader.next(key, value)) {
        ObjectNode row = rows.addObject();
        row.putArray("id").add(key.getWriteId()).add(key.getBucketProperty()).add(key.getRowId());
        row.set("row", plain(ObjectInspectorUtils.copyToStandardJavaObject(value, reader.getObjectInspector())));
      }
      reader.close();
    }
    return answer;
  }

  private static void plainRows(JobConf job, JsonNode request, RecordReader<?, ?> found, ArrayNode rows) throws Exception {
    @SuppressWarnings("unchecked")
    RecordReader<Object, OrcStruct> reader = (RecordReader<Object, OrcStruct>) found;
    TypeInfo type = TypeInfoUtils.getTypeInfoFromTypeString("struct<" + struct(request) + ">");
    ObjectInspector inspector = OrcStruct.createObjectInspector(type);
    OrcStruct value = reader.createValue();
    while (reader.next(reader.createKey(), value)) {
      rows.addObject().set("row", plain(ObjectInspectorUtils.copyToStandardJavaObject(value, inspector)));
    }
    reader.close();
  }

  private static String struct(JsonNode request) {
    String[] names = request.get("columns").asText().split(",");
    List<TypeInfo> types = TypeInfoUtils.getTypeInfosFromTypeString(request.get("types").asText());
    List<String> fields = new ArrayList<>();
    for (int i = 0; i < names.length; i++) {
      fields.add(names[i] + ":" + types.get(i).getTypeName());
    }
    return String.join(",", fields);
  }

  /** As Hive runs it: OrcInputFormat in vector mode gives a VectorizedOrcAcidRowBatchReader. */
  @SuppressWarnings("unchecked")
  private static JsonNode vectorized(JsonNode request) throws Exception {
    JobConf job = scan(request);
    String[] columns = request.get("columns").asText().split(",");
    List<TypeInfo> types = new ArrayList<>(TypeInfoUtils.getTypeInfosFromTypeString(request.get("types").asText()));
    boolean hasIds = !isInsertOnly(request);
    String[] names = Arrays.copyOf(columns, columns.length + (hasIds ? 1 : 0));
    if (hasIds) {
      types.add(RecordIdentifier.StructInfo.typeInfo);
      names[columns.length] = VirtualColumn.ROWID.getName();
    }
    int[] numbers = new int[columns.length];
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = i;
    }
    TypeInfo[] infos = types.toArray(new TypeInfo[0]);
    DataTypePhysicalVariation[] variations = new DataTypePhysicalVariation[infos.length];
    Arrays.fill(variations, DataTypePhysicalVariation.NONE);
    VectorizedRowBatchCtx context = new VectorizedRowBatchCtx(names, infos, variations, numbers, 0,
        hasIds ? 1 : 0, hasIds ? new VirtualColumn[] {VirtualColumn.ROWID} : new VirtualColumn[0], new String[0],
        new DataTypePhysicalVariation[0]);
    MapWork work = new MapWork();
    work.setVectorMode(true);
    work.setVectorizedRowBatchCtx(context);
    job.setBoolean("hive.vectorized.execution.enabled", true);
    job.set("hive.exec.plan", "file:/nowhere/" + System.nanoTime());
    Utilities.setMapWork(job, work);
    OrcInputFormat format = new OrcInputFormat();
    InputSplit[] splits = splits(job, format);
    ObjectNode answer = JSON.createObjectNode().put("splits", splits.length);
    ArrayNode rows = answer.putArray("rows");
    VectorExtractRow extract = new VectorExtractRow();
    extract.init(infos);
    Object[] values = new Object[infos.length];
    for (InputSplit split : splits) {
      RecordReader<Object, VectorizedRowBatch> reader =
          (RecordReader<Object, VectorizedRowBatch>) (RecordReader<?, ?>) format.getRecordReader(split, job, Reporter.NULL);
      answer.put("reader", reader.getClass().getSimpleName());
      VectorizedRowBatch batch = reader.createValue();
      while (reader.next(null, batch)) {
        for (int i = 0; i < batch.size; i++) {
          extract.extractRow(batch, batch.selectedInUse ? batch.selected[i] : i, values);
          ObjectNode row = rows.addObject();
          if (hasIds) {
            row.set("id", text(values[columns.length]));
          }
          ArrayNode shown = row.putArray("row");
          for (int c = 0; c < columns.length; c++) {
            shown.add(text(values[c]));
          }
        }
      }
      reader.close();
    }
    return answer;
  }

  /** AcidUtils: which directories a reader, or a compactor, takes. */
  private static JsonNode state(JsonNode request) throws Exception {
    Configuration conf = new Configuration();
    conf.set("hive.txn.valid.txns", request.get("txns").asText());
    String list = request.get("write_ids").asText();
    ValidWriteIdList writeIds = request.get("compactor").asBoolean()
        ? new ValidCompactorWriteIdList(list) : new ValidReaderWriteIdList(list);
    Path place = new Path(request.get("directory").asText());
    AcidDirectory found = AcidUtils.getAcidState(place.getFileSystem(conf), place, conf, writeIds, Ref.from(false), false);
    ObjectNode answer = JSON.createObjectNode();
    answer.put("base", found.getBaseDirectory() == null ? null : found.getBaseDirectory().getName());
    names(answer.putArray("deltas"), found.getCurrentDirectories().stream().map(AcidUtils.ParsedDelta::getPath));
    names(answer.putArray("originals"), found.getOriginalFiles().stream().map(one -> one.getFileStatus().getPath()));
    names(answer.putArray("directories"), found.getOriginalDirectories().stream());
    names(answer.putArray("obsolete"), found.getObsolete().stream());
    names(answer.putArray("aborted"), found.getAbortedDirectories().stream());
    return answer.put("mixed_aborts", found.hasUncompactedAborts());
  }

  private static void names(ArrayNode array, Stream<Path> paths) {
    paths.forEach(path -> array.add(path.getName()));
  }

  /** OrcRecordUpdater: a delta, a delete delta, or both; the values are strings, longs and ints as JSON has them. */
  private static JsonNode write(JsonNode request) throws Exception {
    List<String> columns = new ArrayList<>(List.of(request.get("columns").asText().split(",")));
    List<TypeInfo> types = TypeInfoUtils.getTypeInfosFromTypeString(request.get("types").asText());
    List<ObjectInspector> inspectors = types.stream()
        .map(TypeInfoUtils::getStandardJavaObjectInspectorFromTypeInfo).collect(Collectors.toCollection(ArrayList::new));
    columns.add("row__id");
    inspectors.add(TypeInfoUtils.getStandardJavaObjectInspectorFromTypeInfo(RecordIdentifier.StructInfo.typeInfo));
    Properties table = new Properties();
    table.setProperty("columns", request.get("columns").asText());
    table.setProperty("columns.types", request.get("types").asText());
    table.setProperty("transactional", "true");
    table.setProperty("transactional_properties", "default");
    long writeId = request.get("write_id").asLong();
    AcidOutputFormat.Options options = new AcidOutputFormat.Options(acidJob(request))
        .inspector(ObjectInspectorFactory.getStandardStructObjectInspector(columns, inspectors))
        .minimumWriteId(writeId).maximumWriteId(writeId).statementId(request.get("statement_id").asInt())
        .bucket(request.get("bucket").asInt()).writingBase(request.path("base").asBoolean())
        .finalDestination(new Path(request.get("directory").asText()))
        .tableProperties(table).recordIdColumn(types.size());
    RecordUpdater updater = new OrcOutputFormat().getRecordUpdater(new Path(request.get("directory").asText()), options);
    for (JsonNode row : request.get("inserts")) {
      updater.insert(writeId, record(row, types, null));
    }
    for (JsonNode change : request.get("updates")) {
      updater.update(writeId, record(change.get("row"), types, change.get("id")));
    }
    for (JsonNode id : request.get("deletes")) {
      updater.delete(writeId, record(null, types, id));
    }
    updater.close(false);
    return JSON.getNodeFactory().booleanNode(true);
  }

  private static List<Object> record(JsonNode row, List<TypeInfo> types, JsonNode id) {
    List<Object> values = new ArrayList<>();
    for (int i = 0; i < types.size(); i++) {
      values.add(row == null || row.get(i).isNull() ? null : value(row.get(i), types.get(i).getTypeName()));
    }
    values.add(id == null ? null : List.of(id.get(0).asLong(), id.get(1).asInt(), id.get(2).asLong()));
    return values;
  }

  private static Object value(JsonNode value, String type) {
    switch (type) {
      case "int": return value.asInt();
      case "bigint": return value.asLong();
      case "double": return value.asDouble();
      case "string": return value.asText();
      default: throw new IllegalArgumentException("no conversion to " + type);
    }
  }

  private static JsonNode text(Object value) {
    if (value == null) {
      return JSON.nullNode();
    }
    if (value instanceof List) {
      ArrayNode result = JSON.createArrayNode();
      ((List<?>) value).forEach(item -> result.add(text(item)));
      return result;
    }
    if (value instanceof Map) {
      ObjectNode result = JSON.createObjectNode();
      ((Map<?, ?>) value).forEach((key, item) -> result.set(String.valueOf(key), text(item)));
      return result;
    }
    return JSON.getNodeFactory().textNode(value.toString());
  }

  private static JsonNode plain(Object value) {
    if (value instanceof List) {
      ArrayNode result = JSON.createArrayNode();
      ((List<?>) value).forEach(item -> result.add(plain(item)));
      return result;
    }
    if (value instanceof Map) {
      ObjectNode result = JSON.createObjectNode();
      ((Map<?, ?>) value).forEach((key, item) -> result.set(String.valueOf(key), plain(item)));
      return result;
    }
    if (value instanceof Number || value instanceof Boolean) {
      return JSON.valueToTree(value);
    }
    return text(value instanceof byte[] ? new BytesWritable((byte[]) value) : value);
  }
}
