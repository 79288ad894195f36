package transactionmetastore.spark.read;

/** Which rows of one directory are deleted. */
interface DeletedRows {
    boolean contains(long writeId, int bucket, long rowId);

    /** Bits, as metastore/acid_tables/deleted.py lays them out. Not for several threads: it remembers where it looked last. */
    final class Bits implements DeletedRows {
        private static final int CHUNK_BITS = 22, BUCKET_BITS = 31, HIGH_BITS = 41;

        private final long directory;
        private final int shift;
        private final long[] versions, parts, starts, ends, words;
        private long version = -1, part = -1, start, end;

        Bits(long[][] table, int shift, long directory) {
            this.shift = shift;
            this.directory = directory;
            versions = table[0];
            parts = table[1];
            starts = table[2];
            ends = table[3];
            words = table[4];
        }

        /** Neighbours are most often of the same chunk: it is looked up only where it changes. */
        @Override
        public boolean contains(long writeId, int bucket, long rowId) {
            long ofRow = writeId << BUCKET_BITS | bucket, around = directory << HIGH_BITS | rowId >> CHUNK_BITS;
            if (ofRow != version || around != part) {
                version = ofRow;
                part = around;
                int place = (int) (((version ^ part << shift) & Long.MAX_VALUE) % versions.length);
                boolean isKnown = versions[place] == version && parts[place] == part;
                start = isKnown ? starts[place] : 0L;
                end = isKnown ? ends[place] : 0L;
            }
            long word = start + ((rowId & (1L << CHUNK_BITS) - 1L) >> 6);
            return word < end && (words[(int) word] >>> (int) (rowId & 63L) & 1L) != 0L;
        }
    }
}
