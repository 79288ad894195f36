package transactionmetastore.spark.read;

import transactionmetastore.spark.files.DeletedBits;

/** The deleted rows of a directory. */
interface DeletedRows {
    boolean contains(long writeId, int bucket, long rowId);

    /** The planner's bits of deleted rows. Only one thread may use an object. */
    final class Bits implements DeletedRows {
        private final DeletedBits bits;

        Bits(long[][] table, int shift, long directory) {
            bits = new DeletedBits(table, shift, directory);
        }

        @Override
        public boolean contains(long writeId, int bucket, long rowId) {
            return bits.contains(DeletedBits.version(writeId, bucket), rowId);
        }
    }
}
