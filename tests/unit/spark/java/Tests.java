package transactionmetastore.spark.files;

import java.io.File;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.mapred.JobConf;
import org.apache.orc.OrcConf;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.orc.OrcUtils;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.SerializableConfiguration;
import scala.reflect.ClassTag$;

/** What the Java classes do by themselves. Each public method is a test; "main" says of each how it ended, as JSON. */
public final class Tests {
    private static final int INSERT = 0, UPDATE = 1, DELETE = 2, STATEMENT = 7;
    private static final StructType ROW = StructType.fromDDL("n INT, t STRING");
    private static final StructType EVENTS = StructType.fromDDL(
        "operation INT, originalTransaction BIGINT, bucket INT, rowId BIGINT, currentTransaction BIGINT, "
        + "`row` STRUCT<n: INT, t: STRING>");
    private static final ColumnTallies NO_COLUMNS = new ColumnTallies(ROW, Arrays.asList());
    private final File directory;
    private final Configuration settings = new Configuration();
    private final CollectionAccumulator<String> reports = new CollectionAccumulator<>();

    public Tests(File directory) {
        this.directory = directory;
        settings.setBoolean("fs.file.impl.disable.cache", true);
    }

    public static void main(String[] arguments) throws Exception {
        run(Tests.class, new File(arguments[0]));
        run(SerdeTests.class, new File(arguments[0]));
        run(transactionmetastore.spark.read.ReadTests.class, new File(arguments[0]));
        run(transactionmetastore.spark.write.WriteTests.class, new File(arguments[0]));
        run(transactionmetastore.spark.txn.TxnTests.class, new File(arguments[0]));
    }

    private static void run(Class<?> tests, File directories) throws ReflectiveOperationException {
        for (Method test : tests.getDeclaredMethods()) {
            if (!java.lang.reflect.Modifier.isPublic(test.getModifiers()) || test.getParameterCount() > 0) continue;
            File directory = new File(directories, test.getName());
            String failure = null;
            try {
                if (!directory.mkdir()) throw new IllegalStateException("There is " + directory);
                test.invoke(tests.getConstructor(File.class).newInstance(directory));
            } catch (InvocationTargetException error) {
                StringWriter trace = new StringWriter();
                error.getCause().printStackTrace(new java.io.PrintWriter(trace, true));
                failure = trace.toString();
            }
            System.out.println(Messages.text(Arrays.asList(test.getName(), failure)));
        }
    }

    // -- the writer ------------------------------------------------------------------------------------------------

    public void eventsKeepTheirIds() throws Exception {
        AcidOrcWriter.Events writer = writer("part-0");
        for (int n = 0; n < 2; ++n) writer.write(change(INSERT, 5L, bucket(2, STATEMENT), 7L + n, 5L, row(n, "a" + n)));
        writer.close();

        same(texts("[0,5," + bucket(2, STATEMENT) + ",7,5,0,a0]", "[0,5," + bucket(2, STATEMENT) + ",8,5,1,a1]"), events("part-0"));
        Map<?, ?> report = reported(0);
        same(2, report.get("rows"));
        same(Arrays.asList(2, 2), Arrays.asList(report.get("lowest_writer"), report.get("highest_writer")));
        same("part-0", report.get("file"));
        same(1, report.get("times"));
    }

    public void aFileSaysWhatHiveReadsInItsFooter() throws Exception {
        AcidOrcWriter.Events writer = writer("part-0");
        writer.write(change(DELETE, 3L, bucket(1, 0), 40L, 9L, null));
        writer.write(change(DELETE, 3L, bucket(1, 0), 41L, 9L, null));
        writer.close();

        Reader file = opened("delete-part-0");
        same("0,0,2", noted(file, "hive.acid.stats"));
        same("2", noted(file, "hive.acid.version"));
        same("3," + bucket(1, 0) + ",41;", noted(file, "hive.acid.key.index"));
        same(false, path("part-0").toFile().exists());
    }

    public void aRowThatIsDeletedTwiceIsReported() throws Exception {
        AcidOrcWriter.Events writer = writer("part-0");
        for (long rowId : new long[] {1L, 2L, 2L, 3L}) writer.write(change(DELETE, 3L, bucket(1, 0), rowId, 9L, null));
        writer.close();

        same(2, reported(0).get("times"));
        same(Arrays.asList(3, bucket(1, 0), 2), reported(0).get("repeated"));
    }

    public void aDeletedRowIsLeftOutBehindItsDeleteEventsAndCounted() throws Exception {
        AcidOrcWriter.Events writer = compactor("part-0", true);
        int bucket = bucket(1, 0), other = bucket(1, 1);
        writer.write(change(DELETE, 3L, bucket, 0L, 9L, null));
        writer.write(change(DELETE, 3L, bucket, 0L, 8L, null));
        writer.write(change(INSERT, 3L, bucket, 0L, 3L, row(0, "gone")));
        writer.write(change(INSERT, 3L, bucket, 1L, 3L, row(1, "a1")));
        writer.write(change(INSERT, 3L, other, 0L, 3L, row(2, "of another statement")));
        writer.write(change(DELETE, 4L, bucket, 7L, 9L, null));
        writer.write(change(3, 5L, bucket, 0L, 5L, null));
        writer.write(change(4, 5L, bucket, 0L, 6L, null));
        writer.close();

        same(texts("[0,3," + bucket + ",1,3,1,a1]", "[0,3," + other + ",0,3,2,of another statement]"), events("part-0"));
        same(false, path("delete-part-0").toFile().exists());
        same(0, reported(0).get("unsorted"));
        same(Arrays.asList(3, other, 0), reported(0).get("last"));
        Map<?, ?> tally = reported(1);
        same(Arrays.asList(1, 1), Arrays.asList(tally.get("lowest_writer"), tally.get("highest_writer")));
        same(Arrays.asList(3, 3), Arrays.asList(tally.get("inserts"), tally.get("deletes")));
        same(Arrays.asList(1, 1), Arrays.asList(tally.get("hidden_inserts"), tally.get("hidden_deletes")));
        same(Arrays.asList(1, 1, 4), Arrays.asList(tally.get("deleted"), tally.get("found"), tally.get("highest_named")));
    }

    public void onlyTheValuesThatAreWrittenAreTallied() throws Exception {
        AcidOrcWriter.Events writer = compactor("part-0", true);
        int bucket = bucket(1, 0);
        writer.write(change(DELETE, 3L, bucket, 0L, 9L, null));
        writer.write(change(INSERT, 3L, bucket, 0L, 3L, row(-7, "gone, and the longest")));
        for (int n = 1; n < 4; ++n) writer.write(change(INSERT, 3L, bucket, (long) n, 3L, row(n, "t\u00e4xt")));
        writer.write(change(INSERT, 3L, bucket, 4L, 3L, row(2, null)));
        writer.write(change(3, 5L, bucket, 0L, 5L, null));
        writer.close();

        Map<?, ?> text = reported(2), number = reported(3);
        same(Arrays.asList("t", 4, 1, 12, 4), Arrays.asList(
            text.get("column"), text.get("rows"), text.get("nulls"), text.get("length"), text.get("longest")));
        same(Arrays.asList("n", 0, "1", "3"), Arrays.asList(
            number.get("column"), number.get("nulls"), number.get("low"), number.get("high")));
        same(Arrays.asList(1, 3), Arrays.asList(registers(text), registers(number)));
    }

    public void everyTypeIsTallied() {
        StructType type = StructType.fromDDL(
            "a BIGINT, c SMALLINT, d TINYINT, e BOOLEAN, f DOUBLE, g FLOAT, i BINARY, j DECIMAL(10,2), k DECIMAL(38,3), "
            + "m DATE, n TIMESTAMP");
        ColumnTallies tallies = new ColumnTallies(type, Arrays.asList(type.fieldNames()));
        tallies.add(new GenericInternalRow(new Object[] {
            1L << 40, (short) 300, (byte) 7, true, 2.5, 1.5f, new byte[] {1, 2}, Decimal.apply("12.34"),
            Decimal.apply("1234567890123456789.125"), 19000, -1500000L}));
        tallies.add(new GenericInternalRow(new Object[] {
            -1L, (short) -300, (byte) -7, false, Double.NaN, Float.POSITIVE_INFINITY, new byte[0], Decimal.apply("-0.01"),
            Decimal.apply("-0.001"), -1, 1500000L}));
        tallies.add(new GenericInternalRow(new Object[type.length()]));
        String[] bounds = {
            "-1 " + (1L << 40), "-300 300", "-7 7", "null null", "2.5 2.5", "1.5 1.5", "null null", "-1 1234",
            "-1 1234567890123456789125", "-1 19000", wall(-2) + " " + wall(1)};
        for (int column = 0; column < bounds.length; ++column) {
            Map<?, ?> tally = Messages.map(tallies.texts()[column]);
            same(bounds[column], tally.get("low") + " " + tally.get("high"));
            same(Arrays.asList(3, 1), Arrays.asList(tally.get("rows"), tally.get("nulls")));
        }
        same(1, Messages.map(tallies.texts()[3]).get("trues"));
    }

    private static long wall(long seconds) {
        return seconds + java.util.TimeZone.getDefault().getOffset(seconds * 1000) / 1000;
    }

    private static int registers(Map<?, ?> tally) {
        int used = 0;
        for (byte rank : java.util.Base64.getDecoder().decode((String) tally.get("sketch"))) if (rank > 0) ++used;
        return used;
    }

    public void whatIsWrittenMayGetNewIds() throws Exception {
        int bucket = bucket(1, 0), other = bucket(1, 1);
        AcidOrcWriter.Events writer = numbering(true);
        writer.write(change(INSERT, 3L, bucket, 7L, 1L, row(7, "a")));
        writer.write(change(DELETE, 3L, bucket, 8L, 1L, null));
        writer.write(change(INSERT, 3L, bucket, 8L, 1L, row(8, "gone")));
        writer.write(change(INSERT, 4L, other, 0L, 1L, row(0, "b")));
        writer.close();

        Map<?, ?> file = reported(0);
        same(Arrays.asList(2, 0, 1L << 40), Arrays.asList(file.get("rows"), file.get("jumps"), file.get("first_row_id")));
        same(Arrays.asList(1, 1), Arrays.asList(file.get("lowest_writer"), file.get("highest_writer")));
        same(Arrays.asList(4, other, (1L << 40) + 1), file.get("last"));
        same(Arrays.asList(3, 1, 1), Arrays.asList(reported(1).get("inserts"), reported(1).get("deleted"), reported(1).get("lowest_writer")));
    }

    public void ofTwoRowsWithOneIdNoneGetsANewOneWhereDeletesAreApplied() throws Exception {
        int bucket = bucket(1, 0);
        AcidOrcWriter.Events writer = numbering(true), other = numbering(false);
        for (AcidOrcWriter.Events each : List.of(writer, other)) each.write(change(INSERT, 3L, bucket, 7L, 0L, row(7, "a")));
        other.write(change(INSERT, 3L, bucket, 7L, 0L, row(7, "a")));
        try {
            writer.write(change(INSERT, 3L, bucket, 7L, 0L, row(7, "a")));
        } catch (IllegalStateException error) {
            same("The row 3," + bucket + ",7 does not belong behind the row before it", error.getMessage());
            return;
        }
        throw new AssertionError("a row was written twice");
    }

    private AcidOrcWriter.Events numbering(boolean merges) {
        return new AcidOrcWriter.Events(
            path("part-" + merges).toUri().toString(), EVENTS, settings, reports, new AcidOrcWriter.Tally(merges), NO_COLUMNS,
            List.of(List.of(0, bucket(1, 0)), List.of(1L << 40, bucket(1, 1))));
    }

    public void aWriterWithoutARowLeftReportsNoFile() throws Exception {
        AcidOrcWriter.Events writer = compactor("part-0", true);
        writer.write(change(DELETE, 3L, bucket(1, 0), 0L, 9L, null));
        writer.write(change(INSERT, 3L, bucket(1, 0), 0L, 3L, row(0, "gone")));
        writer.close();

        same(false, path("part-0").toFile().exists());
        same(1, reported(0).get("deleted"));
    }

    public void whatIsOutOfOrderIsCounted() throws Exception {
        AcidOrcWriter.Events writer = compactor("part-0", false);
        int bucket = bucket(1, 0);
        for (long rowId : new long[] {1L, 0L, 2L, 2L}) writer.write(change(INSERT, 3L, bucket, rowId, 3L, row(0, "a")));
        writer.write(change(INSERT, 2L, bucket, 9L, 2L, row(0, "a")));
        for (long current : new long[] {9L, 8L, 10L}) writer.write(change(DELETE, 3L, bucket, 0L, current, null));
        writer.close();

        same(1, reported(0).get("unsorted"));
        same(2, reported(1).get("unsorted"));
        same(2, reported(1).get("times"));
    }

    public void aWriterIsPartOfAFilesPlace() throws Exception {
        Files.createDirectories(path("w=1"));
        AcidOrcWriter.Events writer = writer("w=1/part-0");
        writer.write(change(INSERT, 5L, bucket(0, 0), 0L, 5L, row(1, "a")));
        writer.close();

        same("w=1/part-0", reported(0).get("file"));
    }

    public void onlyTheRowMayBeMissing() throws Exception {
        refuses(change(DELETE, 3L, bucket(1, 0), null, 9L, null), "may be NULL");
        refuses(change(INSERT, null, bucket(1, 0), 0L, 9L, row(1, "a")), "may be NULL");
        refuses(change(INSERT, 3L, null, 0L, 9L, row(1, "a")), "may be NULL");
        refuses(change(UPDATE, 3L, bucket(1, 0), 0L, 9L, row(1, "a")), "has the operation 1");
    }

    public void everyTypeIsWrittenAsItIs() throws Exception {
        StructType type = StructType.fromDDL(
            "a BIGINT, b INT, c SMALLINT, d TINYINT, e BOOLEAN, f DOUBLE, g FLOAT, h STRING, i BINARY, j DECIMAL(10,2), "
            + "k DECIMAL(38,3), l ARRAY<INT>, m DATE");
        Object[] full = {
            1L << 40, 1 << 20, (short) 300, (byte) 7, true, 2.5, 1.5f, UTF8String.fromString("t\u00e4xt"), new byte[] {1, 2},
            Decimal.apply("12.34"), Decimal.apply("1234567890123456789.125"), new GenericArrayData(new Object[] {1, null}),
            19000};
        StructType events = StructType.fromDDL(EVENTS.toDDL().replace("STRUCT<n: INT, t: STRING>", type.sql()));
        AcidOrcWriter.Events writer = new AcidOrcWriter.Events(
            path("part-0").toUri().toString(), events, settings, reports, new AcidOrcWriter.Tally(false), NO_COLUMNS, List.of());
        writer.write(change(INSERT, 5L, 0, 0L, 5L, new GenericInternalRow(full)));
        writer.write(change(INSERT, 5L, 0, 1L, 5L, new GenericInternalRow(new Object[full.length])));
        writer.write(change(INSERT, 5L, 0, 2L, 5L, null));
        writer.close();

        List<InternalRow> rows = read("part-0", type, places(type.length()), null, 0L, 0);
        for (int column = 0; column < full.length; ++column) {
            Object value = rows.get(0).get(column, type.fields()[column].dataType());
            if (!SerdeWriter.isSame(full[column], value, type.fields()[column].dataType())) {
                throw new AssertionError(type.fields()[column] + " is " + value);
            }
            same(true, rows.get(1).isNullAt(column));
            same(true, rows.get(2).isNullAt(column));
        }
    }

    // -- the reader ------------------------------------------------------------------------------------------------

    public void columnsOfTheRowStandBesideThoseOfTheEvent() throws Exception {
        write("part-0", 2, 0L, 1L);

        List<InternalRow> rows = read("part-0", ROW, new int[] {3, AcidOrcReader.IN_ROW + 1, AcidOrcReader.IN_ROW, 1}, null, 0L, 0);

        same(2, rows.size());
        same(1L, rows.get(1).getLong(0));
        same("a1", rows.get(1).getUTF8String(1).toString());
        same(1, rows.get(1).getInt(2));
        same(5L, rows.get(1).getLong(3));
    }

    public void deletedRowsAreMarkedWhereIdsAreARunAndWhereTheyAreNot() throws Exception {
        write("run", 2, 0L, 1L, 2L, 3L);
        write("gaps", 2, 0L, 1L, 2L, 64L);
        for (String file : new String[] {"run", "gaps"}) {
            for (int small : new int[] {0, 1 << 20}) {
                same(Arrays.asList(false, true, true, false), marks(file, table(5L, bucket(2, 0), 3L, 0b0110L), 3L, small));
                same(Arrays.asList(false, false, false, false), marks(file, table(5L, bucket(2, 0), 3L, 0b0110L), 4L, small));
                same(Arrays.asList(false, false, false, false), marks(file, table(5L, bucket(1, 0), 3L, 0b0110L), 3L, small));
                same(Arrays.asList(false, false, false, false), marks(file, table(6L, bucket(2, 0), 3L, 0b0110L), 3L, small));
            }
        }
    }

    public void aRunIsKnownByItsFooter() throws Exception {
        write("run", 2, 5L, 6L, 7L);
        write("gaps", 2, 5L, 7L);
        AcidOrcWriter.Events two = writer("two");
        two.write(change(INSERT, 5L, bucket(2, 0), 5L, 5L, row(1, "a")));
        two.write(change(INSERT, 6L, bucket(2, 0), 6L, 6L, row(1, "a")));
        two.close();

        same(5L, AcidOrcReader.Run.of(opened("run")).first);
        same(null, AcidOrcReader.Run.of(opened("gaps")));
        same(null, AcidOrcReader.Run.of(opened("two")));
    }

    public void aSmallFileIsReadWholeUnlessItHasGrown() throws Exception {
        write("part-0", 2, 0L, 1L, 2L);
        int size = (int) Files.size(path("part-0"));
        Path file = new Path(path("part-0").toUri());

        Reader whole = SmallOrcFile.open(file, size, OrcFile.readerOptions(settings));
        same(SmallOrcFile.class, whole.getClass());
        same(events(opened("part-0")), events(whole));

        Files.write(path("part-0"), new byte[] {0}, StandardOpenOption.APPEND);
        Class<?> kind = null;
        try {
            kind = SmallOrcFile.open(file, size, OrcFile.readerOptions(settings)).getClass();
        } catch (java.io.IOException error) {  // ORC's own reader, which looks for the tail at the new end
        }
        same(null, kind);
    }

    // -- the rest --------------------------------------------------------------------------------------------------

    public void messagesAreJson() {
        String awkward = "a \t\"b\"\n\0\u00e4";
        same(awkward, Messages.list(Messages.text(Arrays.asList(awkward, 1))).get(0));
        same(1, Messages.map("{\"a\": 1}").get("a"));
        same("[]", Messages.listed(Arrays.asList()));
        same(Arrays.asList(1, "x"), Messages.list(Messages.listed(Arrays.asList("1", "\"x\""))));
    }

    public void anUploadGoesToItsPartition() {
        List<String> values = Arrays.asList("a b", null);
        same("s3a://b/100%/k=a b/p=__HIVE_DEFAULT_PARTITION__/delta_1_1/bucket_00012",
             InPlaceUploads.target("s3a://b/100%", new String[] {"k", "p"}, values, "delta_1_1", "bucket_%05d", 12));
        same("s3a://b/t/delta_1_1/bucket_00003", InPlaceUploads.target("s3a://b/t", new String[0], null, "delta_1_1", "bucket_%05d", 3));
    }

    public void valuesAreComparedAsSparkHasThem() {
        ArrayType texts = DataTypes.createArrayType(DataTypes.StringType);
        Object one = new GenericArrayData(new Object[] {UTF8String.fromString("a"), null});
        same(true, SerdeWriter.isSame(one, new GenericArrayData(new Object[] {UTF8String.fromString("a"), null}), texts));
        same(false, SerdeWriter.isSame(one, new GenericArrayData(new Object[] {UTF8String.fromString("a")}), texts));
        same(false, SerdeWriter.isSame(one, null, texts));
        same(true, SerdeWriter.isSame(new byte[] {1}, new byte[] {1}, DataTypes.BinaryType));
        same(true, SerdeWriter.isSame(Decimal.apply("1.0"), Decimal.apply("1.00"), DataTypes.createDecimalType(5, 2)));
        same(false, SerdeWriter.isSame(1, 2, DataTypes.IntegerType));
    }

    // -- what they need --------------------------------------------------------------------------------------------

    private static int bucket(int writer, int statement) {
        return 1 << 29 | writer << 16 | statement;
    }

    private static InternalRow row(int n, String t) {
        return new GenericInternalRow(new Object[] {n, UTF8String.fromString(t)});
    }

    private static InternalRow change(
            int operation, Long original, Integer bucket, Long rowId, Long current, InternalRow row) {
        return new GenericInternalRow(new Object[] {operation, original, bucket, rowId, current, row});
    }

    private static List<String> texts(String... lines) {
        return Arrays.asList(lines);
    }

    private java.nio.file.Path path(String name) {
        return new File(directory, name).toPath();
    }

    private AcidOrcWriter.Events writer(String name) {
        return new AcidOrcWriter.Events(path(name).toUri().toString(), EVENTS, settings, reports, new AcidOrcWriter.Tally(false), NO_COLUMNS, List.of());
    }

    private AcidOrcWriter.Events compactor(String name, boolean merges) {
        return new AcidOrcWriter.Events(
            path(name).toUri().toString(), EVENTS, settings, reports, new AcidOrcWriter.Tally(merges),
            new ColumnTallies(ROW, Arrays.asList("t", "n")), List.of());
    }

    private void write(String name, int writer, long... rowIds) {
        AcidOrcWriter.Events out = writer(name);
        for (long rowId : rowIds) {
            out.write(change(INSERT, 5L, bucket(writer, 0), rowId, 5L, row((int) rowId, "a" + rowId)));
        }
        out.close();
    }

    private void refuses(InternalRow change, String reason) {
        AcidOrcWriter.Events writer = writer("refused");
        try {
            writer.write(change);
        } catch (IllegalStateException error) {
            same(true, error.getMessage().contains(reason));
            return;
        }
        throw new AssertionError("This was written: " + change);
    }

    private Map<?, ?> reported(int place) {
        return Messages.map(reports.value().get(place));
    }

    private Reader opened(String name) throws Exception {
        return OrcFile.createReader(new Path(path(name).toUri()), OrcFile.readerOptions(settings));
    }

    private List<String> events(String name) throws Exception {
        return events(opened(name));
    }

    /** The events of a file by ORC's own reader: the five fields, then those of the row, or null. */
    private static List<String> events(Reader file) throws Exception {
        List<String> events = new ArrayList<>();
        VectorizedRowBatch batch = file.getSchema().createRowBatch();
        try (RecordReader rows = file.rows()) {
            while (rows.nextBatch(batch)) {
                for (int at = 0; at < batch.size; ++at) {
                    StringBuilder event = new StringBuilder("[");
                    for (int column = 0; column < 5; ++column) {
                        LongColumnVector numbers = (LongColumnVector) batch.cols[column];
                        event.append(numbers.vector[numbers.isRepeating ? 0 : at]).append(",");
                    }
                    StructColumnVector row = (StructColumnVector) batch.cols[5];
                    if (!row.noNulls && row.isNull[row.isRepeating ? 0 : at]) {
                        events.add(event.append("null]").toString());
                        continue;
                    }
                    LongColumnVector n = (LongColumnVector) row.fields[0];
                    BytesColumnVector t = (BytesColumnVector) row.fields[1];
                    event.append(n.vector[n.isRepeating ? 0 : at]).append(",");
                    events.add(event.append(t.toString(t.isRepeating ? 0 : at)).append("]").toString());
                }
            }
        }
        return events;
    }

    private static String noted(Reader file, String name) {
        return StandardCharsets.UTF_8.decode(file.getMetadataValue(name)).toString();
    }

    private static int[] places(int columns) {
        int[] places = new int[columns];
        for (int column = 0; column < columns; ++column) places[column] = AcidOrcReader.IN_ROW + column;
        return places;
    }

    /** The table of deleted rows with one chunk, in the form that deleted.py gives it. */
    private static long[][] table(long writeId, int bucket, long directory, long bits) {
        return new long[][] {
            {writeId << DeletedBits.BUCKET_BITS | bucket}, {directory << DeletedBits.HIGH_BITS}, {0L}, {1L}, {bits}};
    }

    private List<Boolean> marks(String name, long[][] deleted, long directoryNumber, int small) throws Exception {
        List<Boolean> marks = new ArrayList<>();
        for (InternalRow row : read(name, ROW, new int[] {AcidOrcReader.IN_ROW, AcidOrcReader.DELETED}, deleted, directoryNumber, small)) {
            marks.add(row.getBoolean(1));
        }
        return marks;
    }

    /** A file through the reader that runs in tasks. */
    private List<InternalRow> read(
            String name, StructType row, int[] places, long[][] deleted, long directoryNumber, int small) throws Exception {
        StructType events = StructType.fromDDL(EVENTS.toDDL().replace("STRUCT<n: INT, t: STRING>", row.sql()));
        JobConf job = new JobConf(settings);
        String schema = OrcUtils.getOrcSchemaString(events);
        OrcConf.MAPRED_INPUT_SCHEMA.setString(job, schema);
        OrcConf.INCLUDE_COLUMNS.setString(job, "0,1,2,3,4,5");
        Object[] sent = {new SerializableConfiguration(job), deleted};
        AcidOrcReader reader = new AcidOrcReader(new Here(sent), events, schema, places, null, 1024, 0, small);
        File file = path(name).toFile();
        scala.collection.immutable.Map<String, Object> none = scala.collection.immutable.Map$.MODULE$.empty();
        Object rows = reader.apply(new PartitionedFile(
            InternalRow.empty(), SparkPath.fromUri(file.toURI()), 0L, file.length(), new String[0], directoryNumber,
            file.length(), none));
        List<InternalRow> copies = new ArrayList<>();
        for (scala.collection.Iterator<?> batches = (scala.collection.Iterator<?>) rows; batches.hasNext();) {
            ColumnarBatch batch = (ColumnarBatch) batches.next();
            for (java.util.Iterator<InternalRow> each = batch.rowIterator(); each.hasNext();) copies.add(copied(each.next(), row, places));
        }
        return copies;
    }

    private static InternalRow copied(InternalRow from, StructType row, int[] places) {
        org.apache.spark.sql.types.DataType[] ofEvent = {
            DataTypes.IntegerType, DataTypes.LongType, DataTypes.IntegerType, DataTypes.LongType, DataTypes.LongType,
            DataTypes.BooleanType};
        Object[] values = new Object[places.length];
        for (int column = 0; column < values.length; ++column) {
            int place = places[column];
            if (from.isNullAt(column)) continue;
            Object value = from.get(column, place < AcidOrcReader.IN_ROW ? ofEvent[place]
                : row.fields()[place - AcidOrcReader.IN_ROW].dataType());
            values[column] = value instanceof org.apache.spark.sql.catalyst.util.ArrayData array ? array.copy()
                : value instanceof UTF8String text ? text.copy() : value;
        }
        return new GenericInternalRow(values);
    }

    static void same(Object wanted, Object found) {
        if (!Objects.equals(wanted, found)) throw new AssertionError("Wanted " + wanted + ", found " + found);
    }

    /** A broadcast that goes nowhere. */
    private static final class Here extends Broadcast<Object> {
        private static final long serialVersionUID = 1L;
        private final transient Object value;

        Here(Object value) {
            super(0L, ClassTag$.MODULE$.Object());
            this.value = value;
        }

        @Override
        public Object getValue() {
            return value;
        }

        @Override
        public void doUnpersist(boolean blocking) {}

        @Override
        public void doDestroy(boolean blocking) {}
    }
}
