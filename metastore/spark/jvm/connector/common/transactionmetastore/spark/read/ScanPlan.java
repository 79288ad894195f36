package transactionmetastore.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.stream.IntStream;
import transactionmetastore.spark.files.EventFile;
import transactionmetastore.spark.plain.PlainStorage;

/**
 * The planner's answer to "plan": the files of a scan, and the conditions on their rows. "rowCounts": the number of rows of
 * each directory, or null if it is unknown; "changes": null unless the scan reads changes; "columns": the columns'
 * statistics.
 */
public record ScanPlan(
        List<Directory> directories, List<DataFile> files, Visible visible, long[][] deletedBits, int shift,
        DeleteFiles deleteFiles, long[] rowCounts, ChangeFeed changes, ColumnEstimates columns) {

    /**
     * A partition, or the whole table if it has none. "partition": its name; "key": JSON text of its values, "" without
     * partitions; "storage": the storage of its plain files.
     */
    public record Directory(String partition, String key, String[] values, PlainStorage storage) implements Serializable {
        private static final long serialVersionUID = 1L;
    }

    /**
     * A file of which the first "size" bytes count. It holds events; or, if "ids" is not null, plain rows, as all files of
     * insert-only tables do. "directory": the number of its directory. "isCut": the file goes on behind these bytes.
     * "bucket": the bucket of all its rows by the file's name, or null.
     */
    public record DataFile(String path, long size, int directory, boolean isCut, Integer bucket, PlainIds ids)
            implements Serializable {
        private static final long serialVersionUID = 1L;
    }

    /**
     * The ids of a plain file's rows: the n-th row is (writeId, bucket, first + n), as in ROW__ID. "bucket": null if the
     * rows have no ids.
     */
    public record PlainIds(long writeId, Integer bucket, long first) implements Serializable {
        private static final long serialVersionUID = 1L;
    }

    /** Conditions on events and their write ids: above "after", up to "highWatermark" (null: any), and not "hidden". */
    public record Visible(boolean isNotDelete, Long after, Long highWatermark, long[] hidden) implements Serializable {
        private static final long serialVersionUID = 1L;

        boolean isAll() {
            return !isNotDelete && after == null && highWatermark == null && hidden.length == 0;
        }
    }

    /** Delete events that are too many for bits. */
    public record DeleteFiles(List<DataFile> files, Long highWatermark, long[] hidden) implements Serializable {
        private static final long serialVersionUID = 1L;
    }

    static ScanPlan of(JsonNode answer) {
        JsonNode serdes = answer.path("storages");
        List<Directory> directories = new ArrayList<>();
        for (JsonNode directory : answer.path("directories")) {
            JsonNode values = directory.path("values");
            String[] texts = new String[values.size()];
            for (int key = 0; key < texts.length; ++key) texts[key] = values.path(key).isNull() ? null : values.path(key).asText();
            directories.add(new Directory(directory.path("partition").asText(), texts.length == 0 ? "" : directory.path("key").asText(), texts,
                PlainStorage.of(directory.path("format"), serdes.path(directory.path("storage").asInt(-1)))));
        }
        List<DataFile> files = new ArrayList<>();
        for (JsonNode file : answer.path("events")) files.add(file(file, "size", false));
        for (JsonNode file : answer.path("cut")) files.add(file(file, "length", true));
        for (JsonNode file : answer.path("plain")) {
            Integer encoded = integer(file.path("bucket"));
            files.add(new DataFile(
                file.path("path").asText(), file.path("size").asLong(), file.path("dir").asInt(), false,
                encoded == null ? null : Integer.valueOf(EventFile.writerId(encoded)),
                new PlainIds(file.path("write_id").asLong(), encoded, file.path("first_row_id").asLong())));
        }
        JsonNode visible = answer.path("visible"), deleted = answer.path("deleted");
        List<DataFile> deletes = new ArrayList<>();
        for (JsonNode file : deleted.path("files")) deletes.add(file(file, "size", false));
        return new ScanPlan(
            directories, files,
            new Visible(visible.path("not_delete").asBoolean(false), number(visible.path("after")),
                number(visible.path("high_watermark")), sorted(visible.path("hidden"))),
            deleted.has("bits") ? arrays(deleted.path("bits").asText()) : null, deleted.path("shift").asInt(),
            deletes.isEmpty() ? null
                : new DeleteFiles(deletes, number(deleted.path("high_watermark")), sorted(deleted.path("hidden"))),
            answer.path("row_counts").isArray() ? numbers(answer.path("row_counts")) : null, ChangeFeed.of(answer.path("changes")),
            new ColumnEstimates(answer.path("column_statistics")));
    }

    /** Returns the plan without the files of unwanted directories. "isWanted": one flag for each directory. */
    ScanPlan in(List<Boolean> isWanted) {
        if (!isWanted.contains(false)) return this;
        long[] counts = rowCounts == null ? null : rowCounts.clone();
        for (int at = 0; counts != null && at < counts.length; ++at) if (!isWanted.get(at)) counts[at] = 0;
        return new ScanPlan(
            directories, files.stream().filter(file -> isWanted.get(file.directory())).toList(), visible, deletedBits, shift, deleteFiles,
            counts, changes, columns);
    }

    /** Returns the names of the partitions whose files are wanted. */
    List<String> names(List<Boolean> isWanted) {
        return IntStream.range(0, isWanted.size()).filter(isWanted::get).mapToObj(at -> directories.get(at).partition()).toList();
    }

    /** Returns the number of rows; null if it is unknown. */
    Long rowCount() {
        return rowCounts == null ? null : Long.valueOf(Arrays.stream(rowCounts).sum());
    }

    long bytes() {
        return files.stream().mapToLong(DataFile::size).sum();
    }

    private static DataFile file(JsonNode file, String size, boolean isCut) {
        return new DataFile(
            file.path("path").asText(), file.path(size).asLong(), file.path("dir").asInt(), isCut, integer(file.path("bucket")), null);
    }

    private static Integer integer(JsonNode value) {
        return value.isNumber() ? Integer.valueOf(value.asInt()) : null;
    }

    private static Long number(JsonNode value) {
        return value.isNumber() ? Long.valueOf(value.asLong()) : null;
    }

    private static long[] numbers(JsonNode values) {
        long[] numbers = new long[values.size()];
        for (int place = 0; place < numbers.length; ++place) numbers[place] = values.path(place).asLong();
        return numbers;
    }

    private static long[] sorted(JsonNode values) {
        long[] numbers = numbers(values);
        Arrays.sort(numbers);
        return numbers;
    }

    /** Returns five arrays, each stored after its length: DeletedRows.in_bytes of metastore/acid_tables/deleted.py. */
    private static long[][] arrays(String text) {
        ByteBuffer bytes = ByteBuffer.wrap(Base64.getDecoder().decode(text));
        long[][] arrays = new long[5][];
        for (int array = 0; array < arrays.length; ++array) {
            arrays[array] = new long[(int) bytes.getLong()];
            bytes.asLongBuffer().get(arrays[array]);
            bytes.position(bytes.position() + Long.BYTES * arrays[array].length);
        }
        return arrays;
    }
}
