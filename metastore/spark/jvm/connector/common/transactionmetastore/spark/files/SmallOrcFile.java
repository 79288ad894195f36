package transactionmetastore.spark.files;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FutureDataInputStreamBuilder;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.util.functional.FutureIO;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.impl.ReaderImpl;

/**
 * ORC's reader of a file that one request has brought into memory.
 *
 * Deltas are usually small. ORC requests a file's tail, the index and the end of each stripe, and its data one after
 * another. A query with many deltas would wait for the store each time, and on a local disk for ORC's threads.
 */
public class SmallOrcFile extends ReaderImpl {
    @SuppressWarnings("deprecation")  // the other constructor needs a length and a time that nobody uses
    private SmallOrcFile(Path path, OrcFile.ReaderOptions options, byte[] content) throws IOException {
        super(path, options.orcTail(extractFileTail(ByteBuffer.wrap(content))));
        file = new FSDataInputStream(new Content(content));
    }

    /**
     * Returns a reader of a file of "size" bytes, read by a single request; ORC's own reader if the file has grown
     * meanwhile.
     */
    public static Reader open(Path path, int size, OrcFile.ReaderOptions options) throws IOException {
        byte[] content = new byte[size];
        FSDataInputStream source = opened(path, size, options.getConfiguration());
        try {
            source.readFully(content);
            if (source.read() >= 0) return OrcFile.createReader(path, options);
        } finally {
            source.close();
        }
        return new SmallOrcFile(path, options, content);
    }

    private static FSDataInputStream opened(Path path, int size, Configuration settings) throws IOException {
        FutureDataInputStreamBuilder opening = path.getFileSystem(settings).openFile(path);
        opening.opt("fs.option.openfile.length", Integer.toString(size));
        opening.opt("fs.option.openfile.read.policy", "whole-file");
        Object source = FutureIO.awaitFuture(opening.build());
        return (FSDataInputStream) source;
    }

    /** A stream over bytes in memory, as Hadoop reads a file. */
    static final class Content extends FSInputStream {
        private final byte[] content;
        private int place;

        Content(byte[] content) {
            this.content = content;
        }

        @Override
        public void seek(long position) throws IOException {
            if (position < 0 || position > content.length) throw new EOFException("No byte " + position);
            place = (int) position;
        }

        @Override
        public long getPos() {
            return place;
        }

        @Override
        public boolean seekToNewSource(long position) {
            return false;
        }

        @Override
        public int read() {
            return place < content.length ? content[place++] & 0xff : -1;
        }

        @Override
        public int read(byte[] into, int offset, int length) {
            if (place == content.length) return length == 0 ? 0 : -1;
            int count = Math.min(length, content.length - place);
            System.arraycopy(content, place, into, offset, count);
            place += count;
            return count;
        }
    }
}
