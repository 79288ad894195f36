package transactionmetastore.spark.read;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.mapred.JobConf;
import org.apache.orc.OrcFile;
import org.apache.orc.TypeDescription;
import org.apache.orc.Writer;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.filter.And;
import org.apache.spark.sql.connector.expressions.filter.Or;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.SerializableConfiguration;
import transactionmetastore.spark.files.Messages;
import transactionmetastore.spark.files.OrcConditions;
import transactionmetastore.spark.internals.KeyCondition;
import transactionmetastore.spark.planner.AcidException;

/** What the catalog's reader does in a task, and what is asked of the planner. Run by Tests. */
public final class ReadTests {
    private static final StructType ROW = StructType.fromDDL("n INT, t STRING");
    private static final StructType KEYS = StructType.fromDDL("d DATE, k STRING, i INT");
    private static final StructType ALL = StructType.fromDDL("n INT, t STRING, k STRING");
    private static final int BUCKET = 1 << 29 | 3 << 16;

    private final File directory;
    private final Configuration settings = new Configuration();

    public ReadTests(File directory) {
        this.directory = directory;
        settings.setBoolean("fs.file.impl.disable.cache", true);
    }

    public void rowsThatAreDeletedAreLeftOutOfABatch() throws Exception {
        events("inserts", 6, row -> new long[] {0, 5, BUCKET, row, 5, row});
        events("deletes", 2, row -> new long[] {2, 5, BUCKET, 1 + 3 * row, 7, -1});
        String plan = "{" + directories() + ", 'events': [" + file("inserts", 3) + "], 'deleted': {'files': [" + file("deletes", 3)
            + "], 'high_watermark': null, 'hidden': []}}";

        same(List.of("0,a0,x", "2,a2,x", "3,a3,x", "5,a5,x"), read(plan, ALL));
        same(List.of("0", "2", "3", "5"), read(plan, StructType.fromDDL("__acid_rowid BIGINT")));
        same(List.of("", "", "", ""), read(plan, new StructType()));
    }

    public void deleteEventsCountWhereTheyAreVisibleAndOfTheBucket() throws Exception {
        events("inserts", 4, row -> new long[] {0, 5, BUCKET, row, 5, row});
        events("deletes", 4, row -> new long[] {row == 0 ? 0 : 2, 5, BUCKET, row, 6 + row, -1});
        String deletes = "'deleted': {'files': [%s], 'high_watermark': %s, 'hidden': [%s]}}";
        String plan = "{" + directories() + ", 'events': [" + file("inserts", 3) + "], " + deletes;

        same(List.of("0", "3"), read(String.format(plan, file("deletes", 3), "8", ""), StructType.fromDDL("n INT")));
        same(List.of("0", "2"), read(String.format(plan, file("deletes", 3), "null", "8"), StructType.fromDDL("n INT")));
        same(List.of("0", "1", "2", "3"), read(String.format(plan, file("deletes", 4), "null", ""), StructType.fromDDL("n INT")));
    }

    public void eventsCountWhereTheyAreVisible() throws Exception {
        events("inserts", 6, row -> new long[] {row == 5 ? 2 : row % 2, 5, BUCKET, row, 5 + row, row});
        String plan = "{" + directories() + ", 'events': [" + file("inserts", 3)
            + "], 'visible': {'not_delete': true, 'high_watermark': 8, 'hidden': [6]}}";

        same(List.of("0", "2", "3"), read(plan, StructType.fromDDL("n INT")));
    }

    public void rowsOfAPlainFileHaveTheIdsOfTheirPlaces() throws Exception {
        plain("000003_0", "struct<n:int,t:string>", 4);
        events("deletes", 1, row -> new long[] {2, 0, BUCKET, 12, 7, -1});
        String plan = "{" + directories() + ", 'plain': [" + file("000003_0", 3).replace(
            "'bucket': 3", "'bucket': " + BUCKET + ", 'write_id': 0, 'first_row_id': 10")
            + "], 'deleted': {'files': [" + file("deletes", 3) + "]}}";

        same(List.of("0,a0,10", "1,a1,11", "3,a3,13"), read(plan, StructType.fromDDL("n INT, t STRING, __acid_rowid BIGINT")));
        same(List.of("[0," + BUCKET + ",10]", "[0," + BUCKET + ",11]", "[0," + BUCKET + ",13]"),
             read(plan, StructType.fromDDL("ROW__ID STRUCT<writeid: BIGINT, bucketid: INT, rowid: BIGINT>")));
        same(List.of("[10]", "[11]", "[13]"), read(plan, StructType.fromDDL("ROW__ID STRUCT<rowid: BIGINT>")));
    }

    public void rowsWithoutABucketHaveNoIds() throws Exception {
        plain("strange", "struct<n:int,t:string>", 2);
        String plan = "{" + directories() + ", 'plain': [" + file("strange", 3).replace(
            "'bucket': 3", "'bucket': null, 'write_id': 0, 'first_row_id': 0") + "]}";

        same(List.of("0,null", "1,null"), read(plan, StructType.fromDDL(
            "n INT, ROW__ID STRUCT<writeid: BIGINT, bucketid: INT, rowid: BIGINT>")));
    }

    public void aPlainFileWithoutNamesIsReadByPlaces() throws Exception {
        plain("000000_0", "struct<_col0:int,_col1:string>", 2);
        String plan = "{" + directories() + ", 'plain': [" + file("000000_0", 0).replace(
            "'bucket': 0", "'bucket': null, 'write_id': 0, 'first_row_id': 0") + "]}";

        same(List.of("a0", "a1"), read(plan, StructType.fromDDL("t STRING")));
        same(List.of("", ""), read(plan, new StructType()));
    }

    public void onlyTheBeginningOfACutFileCounts() throws Exception {
        events("inserts", 2, row -> new long[] {0, 5, BUCKET, row, 5, row});
        long length = new File(directory, "inserts").length();
        java.nio.file.Files.write(
            new File(directory, "inserts").toPath(), new byte[] {1, 2, 3}, java.nio.file.StandardOpenOption.APPEND);
        java.nio.file.Files.delete(new File(directory, ".inserts.crc").toPath());
        String plan = "{" + directories() + ", 'cut': [" + file("inserts", 3).replaceAll("'size': \\d+", "'length': " + length) + "]}";

        same(List.of("0,a0", "1,a1"), read(plan, ROW));
    }

    public void aFileThatIsGoneIsNamedWithTheReason() throws Exception {
        try {
            read("{" + directories() + ", 'events': [" + file("gone", 3).replace("'size': 0", "'size': 9") + "]}", ROW);
        } catch (AcidException error) {
            same(true, error.getMessage().contains("gone has been cleaned since this query was planned"));
            return;
        }
        throw new AssertionError("It was read");
    }

    public void bitsSayWhichRowsAreDeleted() {
        long[][] table = {{5L << 31 | BUCKET}, {1L << 41}, {0}, {1}, {0b1010}};
        DeletedRows bits = new DeletedRows.Bits(table, 0, 1);
        same(List.of(false, true, false, true), Arrays.asList(
            bits.contains(5, BUCKET, 0), bits.contains(5, BUCKET, 1), bits.contains(5, BUCKET, 2), bits.contains(5, BUCKET, 3)));
        same(false, bits.contains(6, BUCKET, 1));
        same(false, new DeletedRows.Bits(table, 0, 2).contains(5, BUCKET, 1));
    }

    public void largeFilesAreCutAndSmallOnesPutTogether() {
        List<ScanPlan.DataFile> files = new ArrayList<>();
        for (long size : new long[] {10, 10, 250}) files.add(new ScanPlan.DataFile("f" + size, size, 0, false, 0, null));

        same(List.of(List.of(100L), List.of(100L), List.of(50L, 10L, 10L)), lengths(AcidPartition.of(files, 100, 4, 1, file -> true)));
        same(List.of(List.of(141L), List.of(109L, 10L, 10L)), lengths(AcidPartition.of(files, 1000, 4, 2, file -> true)));
        same(List.of(), AcidPartition.of(List.of(), 100, 4, 2, file -> true));
        same(List.of(List.of(250L), List.of(10L, 10L)), lengths(AcidPartition.of(files, 100, 4, 1, file -> file.size() < 100)));
    }

    public void conditionsOnKeysAreTold() {
        Predicate day = new Predicate("=", new Expression[] {FieldReference.apply("d"), LiteralValue.apply(1, DataTypes.DateType)});
        Predicate some = new Predicate("IN", new Expression[] {
            FieldReference.apply("k"), LiteralValue.apply(UTF8String.fromString("a"), DataTypes.StringType),
            LiteralValue.apply(UTF8String.fromString("b"), DataTypes.StringType)});
        Predicate none = new Predicate("IS_NULL", new Expression[] {FieldReference.apply("i")});
        Predicate other = new Predicate("=", new Expression[] {FieldReference.apply("i"), LiteralValue.apply(1L, DataTypes.LongType)});

        same(List.of(List.of("d", "=", "1970-01-02"), List.of("k", "in", "a", "b"), List.of("i", "is null")),
             PartitionConditions.of(List.of(new And(day, some), none, other), KEYS));
        same(true, PartitionConditions.isOfKeys(new And(day, some), KEYS));
        same(false, PartitionConditions.isOfKeys(
            new And(day, new Predicate("IS_NULL", new Expression[] {FieldReference.apply("n")})), KEYS));
    }

    /** Compares with what Python makes of the conditions: tests/unit/acid/test_shared_vectors.py. */
    public void conditionsAreToldAsTheVectorsHaveThem() throws Exception {
        String text = Files.readString(new File(directory.getParentFile(), "shared_vectors.json").toPath(), StandardCharsets.UTF_8);
        for (Object one : (List<?>) Messages.map(text).get("partition_conditions")) {
            Map<?, ?> given = (Map<?, ?>) one;
            DataType type = DataType.fromDDL((String) given.get("sql"));
            List<?> asked = (List<?>) given.get("predicate"), told = (List<?>) given.get("condition");
            Expression[] parts = new Expression[asked.size()];
            parts[0] = FieldReference.apply("k");
            for (int at = 1; at < parts.length; ++at) {
                var string = Literal$.MODULE$.create(UTF8String.fromString((String) asked.get(at)), DataTypes.StringType);
                parts[at] = LiteralValue.apply(Cast$.MODULE$.apply(string, type, scala.Option.apply("UTC"), false).eval(null), type);
            }
            List<Object> expected = new ArrayList<>();
            if (told != null) {
                expected.add("k");
                expected.addAll(told);
            }
            same(told == null ? List.of() : List.of(expected), PartitionConditions.of(
                List.of(new Predicate((String) asked.get(0), parts)), new StructType().add("k", type)));
        }
    }

    public void orcIsShownOnlyWhatFindsAllRows() {
        Timestamp between = Timestamp.valueOf("2026-01-01 00:00:00.123456"), whole = Timestamp.valueOf("2026-01-01 00:00:00.123");
        Timestamp next = Timestamp.valueOf("2026-01-01 00:00:00.124");
        Timestamp early = Timestamp.valueOf("1969-12-31 23:59:59.999001"), afterEarly = Timestamp.valueOf("1970-01-01 00:00:00");
        Filter below = new LessThan("t", next), above = new GreaterThan("t", between);

        same(below, OrcConditions.shown(new LessThan("t", between)));
        same(below, OrcConditions.shown(new LessThanOrEqual("t", between)));
        same(new org.apache.spark.sql.sources.And(new GreaterThanOrEqual("t", between), below), OrcConditions.shown(new EqualTo("t", between)));
        same(new LessThan("t", afterEarly), OrcConditions.shown(new LessThan("t", early)));
        same(new LessThan("t", next.toInstant()), OrcConditions.shown(new LessThan("t", between.toInstant())));
        List<Filter> asTheyAre = List.of(above, new LessThan("t", whole), new EqualTo("t", whole), new In("t", new Object[] {whole, next}),
            new org.apache.spark.sql.sources.Or(above, new EqualTo("d", 1.5)), new Not(new EqualTo("t", whole)));
        for (Filter each : asTheyAre) same(each, OrcConditions.shown(each));
        List<Filter> unfit = List.of(new Not(above), new Not(new EqualTo("t", between)), new In("t", new Object[] {between}), new In("n", new Object[] {1, null}),
            new org.apache.spark.sql.sources.Or(above, new LessThan("t", between)), new GreaterThan("d", 0.0), new EqualTo("f", -0.0f));
        for (Filter each : unfit) same(null, OrcConditions.shown(each));
        Timestamp julian = Timestamp.valueOf("1582-10-04 23:59:59.999999"), first = Timestamp.valueOf("1582-10-15 00:00:00");
        Object[] old = {julian, java.sql.Date.valueOf("1500-02-29"), julian.toInstant(), java.time.LocalDate.of(1, 1, 1)};
        for (Object each : old) same(null, OrcConditions.shown(new EqualTo("t", each)));
        same(new LessThan("t", first), OrcConditions.shown(new LessThan("t", first)));
    }

    public void keysAnswerConditionsWithSparksThreeTruthValues() {
        Expression d = FieldReference.apply("d"), k = FieldReference.apply("k"), i = FieldReference.apply("i");
        Predicate third = is("=", i, literal(3)), other = is("<", i, literal(3)), unknown = is("=", k, LiteralValue.apply(
            UTF8String.fromString("a"), DataTypes.StringType));

        same("true true", answer(third));
        same("false false", answer(other));
        same("false true", answer(unknown));
        same("false true", answer(is("NOT", unknown)));
        same("false false", answer(is("<=>", k, LiteralValue.apply(UTF8String.fromString("a"), DataTypes.StringType))));
        same("true true", answer(new Or(unknown, third)));
        same("false false", answer(new And(unknown, other)));
        same("true true", answer(is("IN", i, literal(1), literal(3))));
        same("false true", answer(is("IN", i, literal(1), LiteralValue.apply(null, DataTypes.IntegerType))));
        same("true true", answer(is("IS_NULL", k)));
        same("false false", answer(is("IS_NOT_NULL", k)));
        same("false false", answer(is("<>", d, LiteralValue.apply(1, DataTypes.DateType))));

        same(null, answer(is("=", i, LiteralValue.apply(3L, DataTypes.LongType))));
        same(null, answer(is("=", FieldReference.apply("n"), literal(3))));
        same(null, answer(new Or(third, is("IS_NULL", FieldReference.apply("n")))));
        same(null, answer(is("RLIKE", k, k)));
        same(null, answer(is("=", literal(3), literal(3))));
    }

    private static Predicate is(String name, Expression... parts) {
        return new Predicate(name, parts);
    }

    private static LiteralValue<Integer> literal(int number) {
        return LiteralValue.apply(number, DataTypes.IntegerType);
    }

    /** Of a partition d = 1970-01-02, k = NULL, i = 3: whether rows meet it, and whether they could. */
    private static String answer(Predicate condition) {
        KeyCondition known = KeyCondition.of(condition, KEYS);
        InternalRow keys = new GenericInternalRow(new Object[] {1, null, 3});
        return known == null ? null : known.holds(keys) + " " + known.mayHold(keys);
    }

    // -- what they need --------------------------------------------------------------------------------------------

    private interface Events {
        /** The five fields of an event, and n of its row; below 0: there is no row. */
        long[] at(int row);
    }

    private void events(String name, int count, Events events) throws Exception {
        TypeDescription type = TypeDescription.fromString("struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,"
            + "currentTransaction:bigint,row:struct<n:int,t:string>>");
        try (Writer out = OrcFile.createWriter(path(name), OrcFile.writerOptions(settings).setSchema(type))) {
            VectorizedRowBatch batch = type.createRowBatch();
            StructColumnVector rows = (StructColumnVector) batch.cols[5];
            for (int row = 0; row < count; ++row) {
                long[] event = events.at(row);
                for (int field = 0; field < 5; ++field) ((LongColumnVector) batch.cols[field]).vector[row] = event[field];
                if (event[5] < 0) {
                    rows.noNulls = false;
                    rows.isNull[row] = true;
                } else {
                    put(rows.fields, row, event[5]);
                }
            }
            batch.size = count;
            out.addRowBatch(batch);
        }
    }

    public void rowsThatAreWrittenAgainHaveNoNanoseconds() throws Exception {
        for (int nanos : new int[] {1, 999, 1001}) {
            times("times", 123456000, 123456000 + nanos);
            try (ExactRecords records = exact("times")) {
                records.nextBatch(TypeDescription.fromString("struct<a:array<timestamp>>").createRowBatch());
                throw new AssertionError(nanos + " ns are not seen");
            } catch (AcidException refused) {
                if (!refused.getMessage().contains("nanoseconds")) throw refused;
            }
        }
        times("times", 0, 123456000);
        try (ExactRecords records = exact("times")) {
            VectorizedRowBatch batch = TypeDescription.fromString("struct<a:array<timestamp>>").createRowBatch();
            same(true, records.nextBatch(batch));
            same(3, batch.size);
            same(false, records.nextBatch(batch));
        }
    }

    private ExactRecords exact(String name) throws Exception {
        return new ExactRecords(OrcFile.createReader(path(name), OrcFile.readerOptions(settings)).rows(), name);
    }

    /** A row with both, one with NULL in the place of the second, one without any. */
    private void times(String name, int... nanos) throws Exception {
        TypeDescription type = TypeDescription.fromString("struct<a:array<timestamp>>");
        OrcFile.WriterOptions options = OrcFile.writerOptions(settings).setSchema(type).overwrite(true);
        try (Writer out = OrcFile.createWriter(path(name), options)) {
            VectorizedRowBatch batch = type.createRowBatch();
            ListColumnVector list = (ListColumnVector) batch.cols[0];
            TimestampColumnVector times = (TimestampColumnVector) list.child;
            for (int row = 0; row < 2; ++row) {
                list.offsets[row] = 2 * row;
                list.lengths[row] = 2;
                for (int place = 0; place < 2; ++place) {
                    times.time[2 * row + place] = 1577836800000L;
                    times.nanos[2 * row + place] = nanos[place];
                }
            }
            times.noNulls = false;
            times.isNull[3] = true;
            list.noNulls = false;
            list.isNull[2] = true;
            list.childCount = 4;
            batch.size = 3;
            out.addRowBatch(batch);
        }
    }

    private void plain(String name, String schema, int count) throws Exception {
        TypeDescription type = TypeDescription.fromString(schema);
        try (Writer out = OrcFile.createWriter(path(name), OrcFile.writerOptions(settings).setSchema(type))) {
            VectorizedRowBatch batch = type.createRowBatch();
            for (int row = 0; row < count; ++row) put(batch.cols, row, row);
            batch.size = count;
            out.addRowBatch(batch);
        }
    }

    private static void put(org.apache.hadoop.hive.ql.exec.vector.ColumnVector[] columns, int row, long n) {
        ((LongColumnVector) columns[0]).vector[row] = n;
        ((BytesColumnVector) columns[1]).setVal(row, ("a" + n).getBytes(java.nio.charset.StandardCharsets.UTF_8));
    }

    private Path path(String name) {
        return new Path(new File(directory, name).toURI());
    }

    private static String directories() {
        return "'directories': [{'partition': 'k=x', 'key': '[\\\"x\\\"]', 'values': ['x'], 'location': ''}]";
    }

    private String file(String name, int bucket) {
        return String.format("{'path': '%s', 'size': %d, 'dir': 0, 'bucket': %d}", path(name), new File(directory, name).length(), bucket);
    }

    private List<String> read(String json, StructType wanted) throws Exception {
        ScanPlan plan = ScanPlan.of(new ObjectMapper().readTree(json.replace('\'', '"')));
        ReadContext context = new ReadContext(
            new SerializableConfiguration(new JobConf(settings)), new Layout(wanted, ROW, StructType.fromDDL("k STRING"), true), plan,
            List.of(new GenericInternalRow(new Object[] {UTF8String.fromString("x")})), 4, false, null);
        List<String> rows = new ArrayList<>();
        for (AcidPartition partition : AcidPartition.of(plan.files(), 1 << 20, 1, 1, file -> true)) {
            try (AcidFileReader reader = new AcidFileReader(context, partition)) {
                while (reader.next()) add(reader.get(), wanted, rows);
            }
        }
        return rows;
    }

    private static void add(ColumnarBatch batch, StructType wanted, List<String> to) {
        for (int row = 0; row < batch.numRows(); ++row) {
            InternalRow values = batch.getRow(row);
            List<String> texts = new ArrayList<>();
            for (int column = 0; column < wanted.length(); ++column) {
                Object value = values.isNullAt(column) ? null : values.get(column, wanted.fields()[column].dataType());
                if (value instanceof InternalRow id) value = Arrays.toString(id.toSeq((StructType) wanted.fields()[column].dataType())
                    .mkString(",").split(",")).replace(" ", "");
                texts.add(String.valueOf(value));
            }
            to.add(String.join(",", texts));
        }
    }

    private static List<List<Long>> lengths(List<AcidPartition> partitions) {
        return partitions.stream().map(one -> one.splits().stream().map(AcidPartition.Split::length).toList()).toList();
    }

    private static void same(Object wanted, Object found) {
        if (!Objects.equals(wanted, found)) throw new AssertionError("wanted " + wanted + ", but it is " + found);
    }
}
