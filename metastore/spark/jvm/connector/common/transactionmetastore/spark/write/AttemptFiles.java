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
 * The files of one attempt of a task, below a directory of its own.
 *
 * Rules. Where a rename costs nothing the directory is in staging, and a failed attempt removes it. On S3 it is on the
 * local disk: a complete file is uploaded to its final name, which it gets when the driver completes the upload, and then
 * removed from the disk. A failed attempt aborts its uploads (InPlaceUploads).
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

    /** Completes a file, and returns its description for the driver. */
    WrittenFile complete(WrittenFile written) throws IOException {
        if (names == null) return written;
        File file = new File(new Path(written.path()).toUri().getPath());
        String target = names.of(written);
        String upload = Messages.text(InPlaceUploads.upload(file, target, settings));
        if (!file.delete()) throw new IOException(file + " cannot be removed");
        return written.uploaded(target, upload);
    }

    /** Removes the attempt's files from the local disk. */
    void close() {
        if (room != null) FileUtil.fullyDelete(room);
    }

    void abort() throws IOException {
        close();
        if (room == null) directory.getFileSystem(settings).delete(directory, true);
    }
}
