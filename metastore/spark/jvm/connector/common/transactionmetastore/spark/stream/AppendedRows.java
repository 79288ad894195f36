package transactionmetastore.spark.stream;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.table.ChangeRange;
import transactionmetastore.spark.txn.StreamHold;
import transactionmetastore.spark.txn.TransactionalTable;

/**
 * A stream of the rows that transactions add to a table, batch by batch in the order of their write ids.
 *
 * Rules. The first batch is the table as it is, unless the stream says where it begins. A batch ends before the first write
 * id that may still be committed, and contains whole transactions. Its snapshot is held until the batch is done, and
 * everything after it as long as the stream lives.
 */
public final class AppendedRows implements MicroBatchStream, SupportsTriggerAvailableNow {
    private static final String MOST = "maxTransactionsPerTrigger", START = "startingVersion", SKIP = "skipChangeCommits";

    /** A limit of a batch, as a number of transactions. */
    private record Transactions(long most) implements ReadLimit {}

    private final RangeScan whole;
    private final ChangeRange changes;
    private final Long most;
    private final String start;
    private final boolean skipsChanges;
    private final StreamHold unread;
    private Long last;
    private RangeScan batch;

    /**
     * Creates a stream. "whole": a scan of the wanted columns; "changes": the point from which changes are read, or null
     * for added rows.
     */
    public AppendedRows(RangeScan whole, CaseInsensitiveStringMap options, ChangeRange changes) {
        this.whole = whole;
        this.changes = changes;
        this.most = options.containsKey(MOST) ? Long.valueOf(number(MOST, options.get(MOST), 1)) : null;
        this.start = options.get(START);
        this.unread = new StreamHold(whole.table().planner(), name());
        this.skipsChanges = options.getBoolean(SKIP, false);
    }

    @Override
    public Offset initialOffset() {
        if (changes != null) return offset(changes.first() - 1);
        if (start == null) return offset(StreamRange.NOTHING_YET);
        return offset(start.equalsIgnoreCase("latest") ? settled(0, null) : number(START, start, 1) - 1);
    }

    private long number(String option, String text, long least) {
        try {
            long number = Long.parseLong(text);
            if (number >= least) return number;
        } catch (NumberFormatException error) {
            // the exception below says why
        }
        throw new AcidException("InvalidInputError", "The option " + option + " of the stream of " + name()
            + " must be a whole number from " + least + " on" + (option.equals(START) ? " (a write id), or latest" : "")
            + ", not '" + text + "'.");
    }

    @Override
    public Offset deserializeOffset(String json) {
        return TableOffset.of(json);
    }

    @Override
    public ReadLimit getDefaultReadLimit() {
        return most == null ? ReadLimit.allAvailable() : new Transactions(most);
    }

    @Override
    public void prepareForTriggerAvailableNow() {
        last = settled(0, null);
    }

    @Override
    public Offset latestOffset() {
        return reportLatestOffset();
    }

    /** Returns the end of the next batch. Spark asks when the last batch is done, even if that committed nothing. */
    @Override
    public Offset latestOffset(Offset from, ReadLimit limit) {
        hold(null);
        long after = ((TableOffset) from).writeId;
        Interruption.asStop(() -> {
            unread.advance(after, () -> settled(0, null));
            return null;
        });
        boolean isLimited = limit instanceof Transactions && after != StreamRange.NOTHING_YET;
        long end = settled(Math.max(after, 0), isLimited ? ((Transactions) limit).most() : null);
        return offset(last == null ? end : Math.max(after, Math.min(end, last)));
    }

    @Override
    public Offset reportLatestOffset() {
        return offset(settled(0, null));
    }

    private long settled(long after, Long limit) {
        Map<String, Object> arguments = new HashMap<>(Map.of("table", name(), "after", after));
        arguments.put("most", limit);
        return Interruption.asStop(() -> whole.table().planner().call("settled", arguments)).path("write_id").asLong();
    }

    @Override
    public InputPartition[] planInputPartitions(Offset from, Offset to) {
        TableOffset begin = (TableOffset) from, end = (TableOffset) to;
        return Interruption.asStop(() -> parts(begin, end));
    }

    private InputPartition[] parts(TableOffset begin, TableOffset end) {
        requireSame(begin, end);
        RangeScan planned = whole.of(changes != null ? changes.of(begin.writeId + 1, end.writeId)
            : new StreamRange(begin.writeId, end.writeId, skipsChanges));
        hold(planned);
        InputPartition[] parts = planned.planInputPartitions();
        PartitionReaderFactory readers = planned.createReaderFactory();
        return Arrays.stream(parts).map(part -> new Part(part, readers)).toArray(InputPartition[]::new);
    }

    /** Refuses offsets of another table: a restarted stream may have noted one of a table that was dropped since. */
    private void requireSame(TableOffset begin, TableOffset end) {
        TransactionalTable table = whole.table();
        String now = table.planner().call("table", table.definition().dbAndTable()).path("id").asText();
        if (begin.table.equals(now) && end.table.equals(now)) return;
        throw new AcidException("InvalidOperationError", name() + " is not the table any more that this stream has begun to "
            + "read: it was dropped, and created again. Start the stream with a new checkpoint.");
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new Readers();
    }

    @Override
    public void commit(Offset end) {
        hold(null);
    }

    @Override
    public void stop() {
        hold(null);
        unread.end();
    }

    private synchronized void hold(RangeScan next) {
        if (next != null) next.use();
        if (batch != null) batch.release();
        batch = next;
    }

    private TableOffset offset(long writeId) {
        return new TableOffset(whole.table().definition().id(), writeId);
    }

    private String name() {
        return whole.table().fullName();
    }

    @Override
    public String toString() {
        return "rows added to " + name();
    }

    /** A task's input together with its readers: Spark asks for a batch's readers without naming the batch. */
    private record Part(InputPartition ofBatch, PartitionReaderFactory readers) implements InputPartition {
        private static final long serialVersionUID = 1L;
    }

    private static final class Readers implements PartitionReaderFactory {
        private static final long serialVersionUID = 1L;

        @Override
        public boolean supportColumnarReads(InputPartition partition) {
            return true;
        }

        @Override
        public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
            Part part = (Part) partition;
            return part.readers.createColumnarReader(part.ofBatch);
        }

        @Override
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            throw new UnsupportedOperationException("ACID files are read in batches");
        }
    }
}
