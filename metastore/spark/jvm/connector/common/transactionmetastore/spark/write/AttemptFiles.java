package transactionmetastore.spark.write;

import java.io.File;
import java.io.IOException;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.Path;
import transactionmetastore.spark.files.InPlaceUploads;
import transactionmetastore.spark.files.Messages;

/**
 * The files of one attempt of a task, below a directory that is only its own.
 *
 * Rules. Where a rename costs nothing the directory is in staging, and goes with an attempt that fails. On S3 it is on this machine's
 * disk: a complete file is uploaded to its final name, which it gets when the driver completes the upload, and then goes. An attempt that
 * fails aborts its uploads (InPlaceUploads).
 */
final class AttemptFiles {
    private final Configuration settings;
    private final FinalNames names;
    private final File room;
    private final Path directory;

    AttemptFiles(TaskSettings how, int partition, long task) {
        this.settings = how.hadoop().settings();
        this.names = how.inPlace();
        this.room = names == null ? null : InPlaceUploads.room();
        this.directory = room != null ? new Path(room.toURI())
            : new Path(how.staging(), "tasks/" + partition + "-" + task + "-" + UUID.randomUUID());
    }

    Path path(String name) {
        return new Path(directory, name);
    }

    /** What the driver is told of a complete file. */
    WrittenFile complete(WrittenFile written) throws IOException {
        if (names == null) return written;
        File file = new File(new Path(written.path()).toUri().getPath());
        String target = names.of(written);
        String upload = Messages.text(InPlaceUploads.upload(file, target, settings));
        if (!file.delete()) throw new IOException(file + " cannot be removed");
        return written.uploaded(target, upload);
    }

    /** After this the attempt has nothing on this machine's disk. */
    void close() {
        if (room != null) FileUtil.fullyDelete(room);
    }

    void abort() throws IOException {
        close();
        if (room == null) directory.getFileSystem(settings).delete(directory, true);
    }
}
