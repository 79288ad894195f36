package transactionmetastore.spark.files;

/**
 * The deleted rows of a directory as bits, in the layout of metastore/acid_tables/deleted.py: five arrays, in the order of
 * its fields. Only one thread may use an object: it remembers its last look-up.
 */
public final class DeletedBits {
    public static final int CHUNK_BITS = 22, BUCKET_BITS = 31, HIGH_BITS = 41;

    private final long directory;
    private final int shift;
    private final long[] versions, parts, starts, ends, words;
    private long version = -1, part = -1, start, end;

    public DeletedBits(long[][] table, int shift, long directory) {
        this.shift = shift;
        this.directory = directory;
        versions = table[0];
        parts = table[1];
        starts = table[2];
        ends = table[3];
        words = table[4];
    }

    /** Returns the write id and the bucket of a row as one number. */
    public static long version(long writeId, long bucket) {
        return writeId << BUCKET_BITS | bucket;
    }

    /**
     * Returns true if the row is deleted. Neighbouring rows are mostly in the same chunk, so a chunk is looked up only when
     * it changes.
     */
    public boolean contains(long ofRow, long rowId) {
        long around = directory << HIGH_BITS | rowId >> CHUNK_BITS;
        if (ofRow != version || around != part) {
            version = ofRow;
            part = around;
            int place = (int) (((version ^ part << shift) & Long.MAX_VALUE) % (long) versions.length);
            boolean known = versions[place] == version && parts[place] == part;
            start = known ? starts[place] : 0L;
            end = known ? ends[place] : 0L;
        }
        long word = start + ((rowId & (1L << CHUNK_BITS) - 1L) >> 6);
        return word < end && (words[(int) word] >>> (int) (rowId & 63L) & 1L) != 0L;
    }
}
