package transactionmetastore.spark.files;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.orc.ColumnStatistics;
import org.apache.orc.IntegerColumnStatistics;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.StripeInformation;
import org.apache.orc.StripeStatistics;
import org.apache.orc.Writer;

/** A copier of files of insert events into one file, stripe by stripe and unread. It works in the driver. */
public class CopiedStripes {
    private static final String INDEX = "hive.acid.key.index", STATS = "hive.acid.stats", VERSION = "hive.acid.version";
    private static final int OPERATION = 1, ORIGINAL = 2, BUCKET = 3, ROW_ID = 4, ROW = 6;

    /**
     * Describes the footers of files, as a JSON list. "form": files of the same form can be joined; "" means that stripes
     * cannot be copied. "stripes": for each the number of rows and of bytes, the lowest id that a row may have, and the
     * last id.
     */
    public String footers(String paths, Configuration settings) throws IOException {
        List<Object> footers = new ArrayList<>();
        for (Object path : Messages.list(paths)) {
            Reader file = OrcFile.createReader(new Path((String) path), OrcFile.readerOptions(settings));
            try {
                footers.add(footer(file));
            } finally {
                file.close();
            }
        }
        return Messages.text(footers);
    }

    private static Map<String, Object> footer(Reader file) throws IOException {
        List<Object> stripes = new ArrayList<>();
        String[] ends = index(file).split(";");
        List<?> all = file.getStripes(), statistics = file.getStripeStatistics();
        boolean isWhole = all.size() == statistics.size() && ends.length == all.size();
        for (int place = 0; isWhole && place < ends.length; ++place) {
            Map<String, Object> described = described(
                (StripeInformation) all.get(place), (StripeStatistics) statistics.get(place), ends[place]);
            isWhole = described != null;
            stripes.add(described);
        }
        Map<String, Object> footer = new LinkedHashMap<>();
        footer.put("form", isWhole ? form(file) : "");
        footer.put("rows", file.getNumberOfRows());
        footer.put("stripes", isWhole ? stripes : new ArrayList<Object>());
        return footer;
    }

    /** Returns the description of a stripe; null unless all events are insert events with a row. */
    private static Map<String, Object> described(StripeInformation stripe, StripeStatistics statistics, String end) {
        ColumnStatistics[] columns = statistics.getColumnStatistics();
        String[] last = end.split(",");
        if (columns.length <= ROW || last.length != 3) return null;
        long[] lowest = new long[3], highest = new long[3];
        for (int column = OPERATION; column < ROW; ++column) {
            if (!(columns[column] instanceof IntegerColumnStatistics)) return null;
            IntegerColumnStatistics numbers = (IntegerColumnStatistics) columns[column];
            if (numbers.getNumberOfValues() != stripe.getNumberOfRows()) return null;
            if (column == OPERATION && (numbers.getMinimum() != 0 || numbers.getMaximum() != 0)) return null;
            if (column >= ORIGINAL && column <= ROW_ID) {
                lowest[column - ORIGINAL] = numbers.getMinimum();
                highest[column - ORIGINAL] = numbers.getMaximum();
            }
        }
        if (columns[ROW].getNumberOfValues() != stripe.getNumberOfRows()) return null;
        Map<String, Object> described = new LinkedHashMap<>();
        described.put("rows", stripe.getNumberOfRows());
        described.put("bytes", stripe.getLength());
        described.put("lowest", lowest);
        described.put("highest", highest);
        described.put("last", new long[] {Long.parseLong(last[0]), Long.parseLong(last[1]), Long.parseLong(last[2])});
        return described;
    }

    private static String index(Reader file) {
        return file.hasMetadataValue(INDEX) ? StandardCharsets.UTF_8.decode(file.getMetadataValue(INDEX)).toString() : "";
    }

    /** Returns the properties that files must share to be joined; "" if this writer cannot write such a file. */
    private static String form(Reader file) {
        if (file.getWriterVersion() != OrcFile.CURRENT_WRITER || file.getColumnEncryptionKeys().length > 0) return "";
        Map<String, Object> form = new TreeMap<>();
        for (String key : file.getMetadataKeys()) {
            if (!key.equals(INDEX) && !key.equals(STATS)) form.put(key, StandardCharsets.ISO_8859_1.decode(file.getMetadataValue(key)).toString());
        }
        form.put("schema", file.getFileTail().getFooter().getTypesList().toString());
        form.put("version", file.getFileVersion().toString());
        form.put("compression", file.getCompressionKind() + " " + file.getCompressionSize());
        form.put("stride", file.getRowIndexStride());
        form.put("calendar", file.getFileTail().getFooter().getCalendar().toString());
        return form.toString();
    }

    /** Copies the stripes of files into one file, in the order of the files, which must have the same form. */
    public void copy(String paths, String path, Configuration settings) throws IOException {
        Writer out = null;
        StringBuilder index = new StringBuilder();
        long rows = 0;
        try {
            for (Object from : Messages.list(paths)) {
                Path source = new Path((String) from);
                Reader file = OrcFile.createReader(source, OrcFile.readerOptions(settings));
                try {
                    if (out == null) out = begun(path, file, settings);
                    copyAll(file, source, settings, out);
                    index.append(index(file));
                    rows += file.getNumberOfRows();
                } finally {
                    file.close();
                }
            }
            out.addUserMetadata(INDEX, ByteBuffer.wrap(index.toString().getBytes(StandardCharsets.UTF_8)));
            out.addUserMetadata(STATS, ByteBuffer.wrap((rows + ",0,0").getBytes(StandardCharsets.UTF_8)));
        } finally {
            if (out != null) out.close();
        }
    }

    private static Writer begun(String path, Reader like, Configuration settings) throws IOException {
        OrcFile.WriterOptions options = OrcFile.writerOptions(settings).setSchema(like.getSchema())
            .compress(like.getCompressionKind()).version(like.getFileVersion()).rowIndexStride(like.getRowIndexStride())
            .setProlepticGregorian(like.writerUsedProlepticGregorian());
        if (like.getCompressionSize() > 0) options.bufferSize(like.getCompressionSize()).enforceBufferSize();
        Writer out = OrcFile.createWriter(new Path(path), options);
        for (String key : like.getMetadataKeys()) {
            if (!key.equals(INDEX) && !key.equals(STATS)) out.addUserMetadata(key, like.getMetadataValue(key));
        }
        return out;
    }

    private static void copyAll(Reader file, Path path, Configuration settings, Writer out) throws IOException {
        List<?> all = file.getStripes(), statistics = file.getStripeStatistics();
        FSDataInputStream source = path.getFileSystem(settings).open(path);
        try {
            for (int place = 0; place < all.size(); ++place) {
                StripeInformation stripe = (StripeInformation) all.get(place);
                byte[] content = new byte[(int) stripe.getLength()];
                source.readFully(stripe.getOffset(), content);
                StripeStatistics[] ofStripe = {(StripeStatistics) statistics.get(place)};
                out.appendStripe(content, 0, content.length, stripe, ofStripe);
            }
        } finally {
            source.close();
        }
    }
}
