package transactionmetastore.spark.write;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import transactionmetastore.spark.files.EventColumns;
import transactionmetastore.spark.files.EventFile;
import transactionmetastore.spark.files.Messages;
import transactionmetastore.spark.table.BucketHash;
import transactionmetastore.spark.table.RowId;
import transactionmetastore.spark.table.TableShape;
import transactionmetastore.spark.table.WriterFunction;

/** What tasks that write do by themselves. Each public method is a test. */
public final class WriteTests {
    private static final long WRITE_ID = 9;
    private static final int STATEMENT = 3;
    private static final StructType COLUMNS = StructType.fromDDL("n INT, t STRING");
    private static final StructType NONE = new StructType();
    private final File directory;

    public WriteTests(File directory) {
        this.directory = directory;
    }

    // -- new rows ------------------------------------------------------------------------------------------------------

    public void theTaskIsTheWriterOfNewRows() throws Exception {
        TaskWriter writer = writer(plain(), true, 5);
        for (int n = 0; n < 3; ++n) writer.insert(row(n, "a" + n));
        WrittenFile file = committed(writer).get(0);

        same(List.of("[0,9," + codec(5, 3) + ",0,9,0,a0]", "[0,9," + codec(5, 3) + ",1,9,1,a1]",
                     "[0,9," + codec(5, 3) + ",2,9,2,a2]"), events(file));
        same(List.of(5, 3, false, 3L, 0L), List.of(file.bucket(), file.statement(), file.isDelete(), file.rows(), file.updates()));
        same(null, file.key());
    }

    public void whereTheNumbersOfWritersEndThatOfTheStatementMovesOn() throws Exception {
        TaskWriter writer = writer(plain(), true, 4096 + 7);
        writer.insert(row(1, "a"));
        WrittenFile file = committed(writer).get(0);

        same(List.of(7, 4), List.of(file.bucket(), file.statement()));
        same(List.of("[0,9," + codec(7, 4) + ",0,9,1,a]"), events(file));
    }

    public void eachPartitionHasItsFile() throws Exception {
        TaskWriter writer = writer(partitioned("d DATE, x STRING"), true, 0);
        writer.insert(new GenericInternalRow(new Object[] {1, text("a"), 19000, text("t\u00e4/\"q\"")}));
        writer.insert(new GenericInternalRow(new Object[] {2, text("b"), 19000, text("t\u00e4/\"q\"")}));
        writer.insert(new GenericInternalRow(new Object[] {3, text("c"), null, text("")}));
        List<WrittenFile> files = committed(writer);

        same(List.of("[\"2022-01-08\",\"t\u00e4/\\\"q\\\"\"]", "[null,null]"), files.stream().map(WrittenFile::key).toList());
        same(List.of(2L, 1L), files.stream().map(WrittenFile::rows).toList());
        same(List.of("[0,9," + codec(0, 3) + ",0,9,3,c]"), events(files.get(1)));
    }

    public void rowsOfATableWithBucketsGoWhereTheyHash() throws Exception {
        TaskWriter writer = writer(bucketed(), false, 5);
        for (int n = 0; n < 8; ++n) writer.insert(row(n, "a"));
        List<WrittenFile> files = committed(writer);

        BucketHash hash = new BucketHash(2, 2, List.of("int"), List.of(DataTypes.IntegerType), "UTC");
        for (WrittenFile file : files) {
            for (String event : events(file)) {
                int n = Integer.parseInt(event.split(",")[5]);
                same(hash.bucket(row(n, "a"), new int[] {0}), file.bucket());
                same(true, event.startsWith("[0,9," + codec(file.bucket(), 3)));
            }
        }
        same(2, files.size());
    }

    // -- rows that change ----------------------------------------------------------------------------------------------

    public void anUpdateIsADeleteEventAndANewRow() throws Exception {
        TaskWriter writer = writer(plain(), false, 6);
        writer.update(null, id(4, codec(1, 0), 40), row(1, "new"));
        writer.update(null, id(4, codec(1, 7), 2), row(2, "newer"));
        List<WrittenFile> files = committed(writer);

        same(List.of("[2,4," + codec(1, 0) + ",40,9,null]", "[2,4," + codec(1, 7) + ",2,9,null]"), events(files.get(0)));
        same(List.of("[0,9," + codec(6, 3) + ",0,9,1,new]", "[0,9," + codec(6, 3) + ",1,9,2,newer]"), events(files.get(1)));
        same(List.of(1, true, 6, 2L), List.of(
            files.get(0).bucket(), files.get(0).isDelete(), files.get(1).bucket(), files.get(1).updates()));
    }

    public void inATableWithBucketsTheNewVersionStaysWhereTheOldOneWas() throws Exception {
        TaskWriter writer = writer(bucketed(), false, 6);
        writer.update(null, id(4, codec(1, 0), 40), row(1, "new"));

        same(List.of(1, 1), committed(writer).stream().map(WrittenFile::bucket).toList());
    }

    public void eachWriterOfAPartitionHasItsFileOfDeletes() throws Exception {
        TaskWriter writer = writer(partitioned("p INT"), false, 0);
        InternalRow first = new GenericInternalRow(new Object[] {text("[\"01\"]")});
        writer.delete(first, id(4, 0, 1));
        writer.delete(first, id(4, codec(0, 5), 1));
        writer.delete(first, id(4, codec(2, 5), 1));
        writer.delete(new GenericInternalRow(new Object[] {text("[null]")}), id(4, codec(2, 5), 1));
        List<WrittenFile> files = committed(writer);

        same(List.of("[\"01\"] 0 2", "[\"01\"] 2 1", "[null] 2 1"),
             files.stream().map(one -> one.key() + " " + one.bucket() + " " + one.rows()).toList());
    }

    public void aRowThatTwoEventsDeleteIsReported() throws Exception {
        TaskWriter writer = writer(plain(), false, 0);
        for (long row : new long[] {1, 2}) writer.delete(null, id(4, codec(0, 0), row));
        writer.update(null, id(4, codec(0, 0), 2), row(2, "b"));
        WrittenFile file = committed(writer).stream().filter(each -> each.times() > 1).findFirst().orElseThrow();

        same(2L, file.times());
        same("[4, " + codec(0, 0) + ", 2]", Arrays.toString(file.repeated()));
    }

    public void aRowThatIsOnlyDeletedGoesOnce() throws Exception {
        TaskWriter writer = writer(plain(), false, 0);
        for (long row : new long[] {1, 2, 2, 3}) writer.delete(null, id(4, codec(0, 0), row));
        same(3L, committed(writer).get(0).rows());
    }

    public void aRowWithoutAnIdIsNotDeleted() throws Exception {
        TaskWriter writer = writer(plain(), false, 0);
        refused("A row of db.t has no id, so it cannot be changed", () -> writer.delete(null, id(4, RowId.NO_BUCKET, 1)));
    }

    public void aMergeMovesNoRow() throws Exception {
        InternalRow old = new GenericInternalRow(new Object[] {text("[\"03\",\"2022-1-8\"]")});
        TaskWriter writer = writer(partitioned("p INT, d DATE"), false, 0, true);
        writer.update(old, id(4, codec(1, 0), 1), new GenericInternalRow(new Object[] {1, text("a"), 3, 19000}));
        refused("Partition column d of db.t cannot be updated",
            () -> writer.update(old, id(4, codec(1, 0), 2), new GenericInternalRow(new Object[] {1, text("a"), 3, 19001})));
        BucketHash hash = new BucketHash(2, 2, List.of("int"), List.of(DataTypes.IntegerType), "UTC");
        int own = hash.bucket(row(1, "a"), new int[] {0});
        TaskWriter placed = writer(bucketed(), false, 0, true);
        placed.update(null, id(4, codec(own, 0), 1), row(1, "new"));
        refused("Bucketing column n of db.t cannot be updated", () -> placed.update(null, id(4, codec(1 - own, 0), 1), row(1, "new")));
    }

    private interface Attempt {
        void run() throws Exception;
    }

    private static void refused(String reason, Attempt attempt) throws Exception {
        try {
            attempt.run();
        } catch (transactionmetastore.spark.planner.AcidException error) {
            same(true, error.getMessage().startsWith(reason));
            return;
        }
        throw new AssertionError("It was done");
    }

    // -- attempts ------------------------------------------------------------------------------------------------------

    public void anAttemptThatFailsTakesItsFilesWithItAndNoOthers() throws Exception {
        TaskWriter first = writer(plain(), true, 0), second = writer(plain(), true, 0);
        first.insert(row(1, "a"));
        second.insert(row(1, "a"));
        second.abort();
        WrittenFile file = committed(first).get(0);

        same(1, events(file).size());
        same(1, new File(directory, "tasks").list().length);
    }

    // -- where rows go -------------------------------------------------------------------------------------------------

    @SuppressWarnings("unchecked")
    public void theFunctionSaysTheWriter() {
        TableShape.Buckets buckets = new TableShape.Buckets(4, 2, List.of("t"), List.of("varchar(5)"), List.of());
        StructType both = StructType.fromDDL("b INT, t STRING"), one = StructType.fromDDL("t STRING");
        var existing = (ScalarFunction<Integer>) WriterFunction.named(WriterFunction.ofRows("b").name())
            .bind(StructType.fromDDL("b INT"));
        same(7, existing.produceResult(new GenericInternalRow(new Object[] {codec(7, 5)})));
        same(3, existing.produceResult(new GenericInternalRow(new Object[] {3})));
        var fresh = (ScalarFunction<Integer>) WriterFunction.named(WriterFunction.ofNewRows(buckets, "UTC").name()).bind(one);
        int bucket = fresh.produceResult(new GenericInternalRow(new Object[] {text("x")}));
        for (var purpose : WriterFunction.Purpose.values()) {
            var change = (ScalarFunction<Integer>) WriterFunction.named(
                WriterFunction.ofChanges(purpose, "b", buckets, List.of(), "UTC").name()).bind(both);
            same(bucket, change.produceResult(new GenericInternalRow(new Object[] {null, text("x")})));
            same(7, change.produceResult(new GenericInternalRow(new Object[] {codec(7, 5), text("x")})));
        }
        var order = (ScalarFunction<Integer>) WriterFunction.named(WriterFunction.ofChanges(
            WriterFunction.Purpose.ORDER, "b", TableShape.Buckets.NONE, List.of("t"), "UTC").name()).bind(StructType.fromDDL("b INT"));
        same(-1, order.produceResult(new GenericInternalRow(new Object[] {null})));
        same(null, WriterFunction.named("bucket"));
    }

    /** The cases come from metastore/acid/hashes.py: see tests/unit/spark/test_java.py. */
    public void bucketsAreThoseOfTheRule() throws Exception {
        String cases = Files.readString(new File(directory.getParentFile(), "hashes.json").toPath(), StandardCharsets.UTF_8);
        for (Object one : Messages.list(cases)) {
            Map<?, ?> given = (Map<?, ?>) one;
            List<?> hive = (List<?>) given.get("types"), sql = (List<?>) given.get("sql"), values = (List<?>) given.get("values");
            List<String> names = new ArrayList<>();
            List<DataType> types = new ArrayList<>();
            Object[] row = new Object[values.size()];
            int[] places = new int[values.size()];
            for (int at = 0; at < row.length; ++at) {
                names.add((String) hive.get(at));
                types.add(DataType.fromDDL((String) sql.get(at)));
                row[at] = value(values.get(at), types.get(at));
                places[at] = at;
            }
            BucketHash hash = new BucketHash((Integer) given.get("version"), (Integer) given.get("count"), names, types, "UTC");
            int found = hash.bucket(new GenericInternalRow(row), places);
            if (found != (Integer) given.get("bucket")) throw new AssertionError(given + " is in bucket " + found);
        }
    }

    /** The hashes are Hive's: tests/support/acid/shared_vectors.json. */
    public void bucketsAreThoseOfTheVectors() throws Exception {
        int most = Integer.MAX_VALUE;
        for (Object one : vectors("bucket_hashes")) {
            List<?> given = (List<?>) one;
            String hive = (String) given.get(0);
            DataType type = hive.matches("(var)?char.*") ? DataTypes.StringType : DataType.fromDDL(hive);
            for (int version = 1; version <= 2; ++version) {
                Integer hash = (Integer) given.get(1 + version);
                if (hash == null) continue;
                int found = new BucketHash(version, most, List.of(hive), List.of(type), "UTC")
                    .bucket(new GenericInternalRow(new Object[] {value(given.get(1), type)}), new int[] {0});
                if (found != (hash & most) % most) throw new AssertionError(given + " by version " + version + " is in bucket " + found);
            }
        }
    }

    public void writersOfBucketNumbersAreThoseOfTheVectors() throws Exception {
        for (Object one : vectors("bucket_numbers")) {
            List<?> given = (List<?>) one;
            int number = (Integer) given.get(0), writer = (Integer) given.get(2), statement = (Integer) given.get(3);
            same(writer, EventFile.writerId(number));
            if (!given.get(1).equals(0)) same(number, EventFile.bucketNumber(writer, statement));
        }
    }

    public void columnsOfEventsAreThoseOfTheVectors() throws Exception {
        List<Object> found = new ArrayList<>();
        for (var field : EventColumns.around(StructType.fromDDL("n INT")).fields()) found.add(List.of(field.name(), field.dataType().simpleString()));
        same(vectors("event_columns"), found);
        same("rowId", ((List<?>) found.get(EventColumns.ROW_ID)).get(0));
        same("currentTransaction", ((List<?>) found.get(EventColumns.CURRENT)).get(0));
    }

    private List<?> vectors(String name) throws Exception {
        File file = new File(directory.getParentFile(), "shared_vectors.json");
        return (List<?>) Messages.map(Files.readString(file.toPath(), StandardCharsets.UTF_8)).get(name);
    }

    public void whatVersionTwoCannotHashIsRefused() {
        try {
            new BucketHash(2, 4, List.of("timestamp"), List.of(DataTypes.TimestampType), "UTC");
        } catch (IllegalArgumentException error) {
            same("A table cannot be bucketed by a timestamp column with bucketing version 2", error.getMessage());
            return;
        }
        throw new AssertionError("It was hashed");
    }

    private static Object value(Object given, DataType type) {
        if (given == null) return null;
        if (type instanceof ArrayType array) {
            return new GenericArrayData(((List<?>) given).stream().map(one -> value(one, array.elementType())).toArray());
        }
        if (type instanceof StructType struct) {
            Object[] fields = new Object[struct.length()];
            for (int at = 0; at < fields.length; ++at) fields[at] = value(((List<?>) given).get(at), struct.fields()[at].dataType());
            return new GenericInternalRow(fields);
        }
        if (type instanceof MapType map) {
            List<Object> keys = new ArrayList<>(), values = new ArrayList<>();
            for (Object pair : (List<?>) given) {
                keys.add(value(((List<?>) pair).get(0), map.keyType()));
                values.add(value(((List<?>) pair).get(1), map.valueType()));
            }
            return new ArrayBasedMapData(new GenericArrayData(keys.toArray()), new GenericArrayData(values.toArray()));
        }
        if (type.equals(DataTypes.BinaryType)) return Base64.getDecoder().decode((String) given);
        var literal = Literal$.MODULE$.create(UTF8String.fromString((String) given), DataTypes.StringType);
        return Cast$.MODULE$.apply(literal, type, scala.Option.apply("UTC"), false).eval(null);
    }

    // -- support -------------------------------------------------------------------------------------------------------

    private TableShape plain() {
        return new TableShape("db.t", directory.toURI().toString(), COLUMNS, NONE, TableShape.Buckets.NONE, null);
    }

    private TableShape partitioned(String keys) {
        return new TableShape("db.t", directory.toURI().toString(), COLUMNS, StructType.fromDDL(keys), TableShape.Buckets.NONE, null);
    }

    private TableShape bucketed() {
        return new TableShape("db.t", directory.toURI().toString(), COLUMNS, NONE,
            new TableShape.Buckets(2, 2, List.of("n"), List.of("int"), List.of()), null);
    }

    private TaskWriter writer(TableShape table, boolean isOrdered, int partition) {
        return writer(table, isOrdered, partition, false);
    }

    private TaskWriter writer(TableShape table, boolean isOrdered, int partition, boolean mayMove) {
        Configuration settings = new Configuration();
        settings.setBoolean("fs.file.impl.disable.cache", true);
        return new TaskWriter(new TaskSettings(
            table, directory.toURI().toString(), null, WRITE_ID, STATEMENT, "UTC", isOrdered, mayMove, RowRules.NONE, null, () -> settings), partition, 77);
    }

    private static List<WrittenFile> committed(TaskWriter writer) throws Exception {
        List<WrittenFile> files = ((TaskWriter.Written) writer.commit()).files();
        writer.close();
        return files;
    }

    private static InternalRow row(int n, String text) {
        return new GenericInternalRow(new Object[] {n, text(text)});
    }

    private static InternalRow id(long writeId, int bucket, long row) {
        return new GenericInternalRow(new Object[] {writeId, bucket, row});
    }

    private static UTF8String text(String text) {
        return UTF8String.fromString(text);
    }

    private static int codec(int writer, int statement) {
        return 1 << 29 | writer << 16 | statement;
    }

    private static List<String> events(WrittenFile written) throws Exception {
        Reader file = OrcFile.createReader(new Path(written.path()), OrcFile.readerOptions(new Configuration()));
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

    private static void same(Object wanted, Object found) {
        if (!Objects.equals(wanted, found)) throw new AssertionError("Wanted " + wanted + ", found " + found);
    }
}
