package transactionmetastore.spark.files;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileNotFoundException;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BBPartHandle;
import org.apache.hadoop.fs.BBUploadHandle;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.MultipartUploader;
import org.apache.hadoop.fs.PartHandle;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.UploadHandle;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.TaskFailureListener;
import org.apache.spark.util.Utils;
import transactionmetastore.spark.internals.SparkInternals;

/**
 * Uploads that tasks begin and the driver ends; the rule is in metastore/spark/write/in_place.py.
 *
 * A wrapped writer writes files on the task's local disk. When it closes a file, the file is uploaded to its final name, in
 * parts, and the upload stays incomplete. The driver learns of the uploads by an accumulator; Spark adds those of the
 * attempts that it keeps.
 */
public class InPlaceUploads {
    private static final long PART = 64L << 20;
    private static final int MOST_PARTS = 10000;
    private static final String WRITER = "/__acid_writer=";

    /** Creates a write into one directory. "pattern": the name of a file by its writer's number. */
    public Write write(SparkContext spark, String directory, String pattern) {
        CollectionAccumulator<String> uploads = new CollectionAccumulator<>();
        spark.register(uploads);
        return new Write(uploads, directory, pattern);
    }

    /** Returns true if files are written in place there: a rename is a copy, and an incomplete upload is no file. */
    public boolean isFor(String root, Configuration settings) throws IOException {
        Path place = new Path(root);
        String scheme = String.valueOf(place.toUri().getScheme());
        if (!scheme.equals("s3a") && !scheme.equals("s3") && !scheme.equals("s3n")) return false;
        return place.getFileSystem(settings).hasPathCapability(place, "fs.capability.multipart.uploader");
    }

    /** Creates a directory on the local disk for the files of an attempt. */
    public static File room() {
        return new File(Utils.getLocalDir(new SparkConf()), "acid-" + UUID.randomUUID());
    }

    /**
     * Uploads a task's complete file without completing the upload; an attempt that fails aborts it. Returns "target",
     * "handle" and "parts" of Upload in metastore/spark/write/in_place.py.
     */
    public static Map<String, Object> upload(File file, String target, Configuration settings) throws IOException {
        Path place = new Path(target);
        MultipartUploader uploader = uploader(place, settings);
        UploadHandle handle = (UploadHandle) done(uploader.startUpload(place));
        Map<String, Object> upload = new LinkedHashMap<>();
        upload.put("target", target);
        upload.put("handle", text(handle.bytes()));
        TaskContext.get().addTaskFailureListener(new Abandoning(upload, settings));
        List<String> parts = new ArrayList<>();
        long size = file.length(), most = Math.max(PART, size / (MOST_PARTS - 1));
        Rewindable in = new Rewindable(new FileInputStream(file));
        try {
            for (long at = 0; at == 0 || at < size; at += most) {
                long length = Math.min(most, size - at);
                boolean isLast = at + length == size;
                Object tag = done(SparkInternals.putPart(uploader, handle, parts.size() + 1, isLast, place, in, length));
                parts.add(text(((PartHandle) tag).bytes()));
            }
        } finally {
            in.close();
        }
        upload.put("parts", parts);
        return upload;
    }

    /**
     * Returns a final name: "directory" below the partition with these values (null without partitions), and "pattern" with
     * "number".
     */
    public static String target(String root, String[] keys, List<?> values, String directory, String pattern, int number) {
        StringBuilder place = new StringBuilder(root);
        for (int at = 0; at < keys.length; ++at) {
            place.append("/").append(ExternalCatalogUtils.getPartitionPathString(keys[at], (String) values.get(at)));
        }
        return place.append("/").append(directory).append("/").append(String.format(pattern, number)).toString();
    }

    /** Completes uploads, or aborts them. "uploads": a list in the form of Write.uploads. */
    public void end(String uploads, boolean isComplete, Configuration settings) throws IOException {
        List<CompletableFuture<?>> pending = new ArrayList<>();
        for (Object upload : Messages.list(uploads)) pending.add(ended((Map<?, ?>) upload, isComplete, settings));
        IOException failure = null;
        for (CompletableFuture<?> ended : pending) {
            try {
                done(ended);
            } catch (IOException error) {
                boolean isGone = error instanceof FileNotFoundException;    // the upload no longer exists
                if (isComplete || !isGone) failure = error;
            }
        }
        if (failure != null) throw failure;
    }

    private static CompletableFuture<?> ended(Map<?, ?> upload, boolean isComplete, Configuration settings)
            throws IOException {
        Path target = new Path((String) upload.get("target"));
        MultipartUploader uploader = uploader(target, settings);
        UploadHandle handle = BBUploadHandle.from(bytes((String) upload.get("handle")));
        if (!isComplete) return uploader.abort(handle, target);
        Map<Integer, PartHandle> parts = new HashMap<>();
        for (Object tag : (List<?>) upload.get("parts")) parts.put(parts.size() + 1, BBPartHandle.from(bytes((String) tag)));
        return uploader.complete(handle, target, parts);
    }

    /** A write, in the driver. As a function it turns a factory of writers into a factory of writers that upload. */
    public static class Write implements Function<Object, Object> {
        private final CollectionAccumulator<String> uploads;
        private final String directory, pattern;

        Write(CollectionAccumulator<String> uploads, String directory, String pattern) {
            this.uploads = uploads;
            this.directory = directory;
            this.pattern = pattern;
        }

        @Override
        public Object apply(Object factory) {
            return new Factory((OutputWriterFactory) factory, uploads, directory, pattern);
        }

        /** Returns the tasks' uploads as JSON: a list of Upload in metastore/spark/write/in_place.py. */
        public String uploads() {
            return Messages.listed(uploads.value());
        }
    }

    /** The factory that Spark sends from the driver to the tasks. */
    public static class Factory extends OutputWriterFactory {
        private static final long serialVersionUID = 1L;
        private final OutputWriterFactory other;
        private final CollectionAccumulator<String> uploads;
        private final String directory, pattern;

        Factory(OutputWriterFactory other, CollectionAccumulator<String> uploads, String directory, String pattern) {
            this.other = other;
            this.uploads = uploads;
            this.directory = directory;
            this.pattern = pattern;
        }

        @Override
        public String getFileExtension(TaskAttemptContext context) {
            return other.getFileExtension(context);
        }

        @Override
        public OutputWriter newInstance(String path, StructType columns, TaskAttemptContext context) {
            File place = room();
            File file = new File(place, "part-" + UUID.randomUUID() + getFileExtension(context));
            OutputWriter writer = other.newInstance(new Path(file.toURI()).toString(), columns, context);
            return new Uploading(writer, path, place, context.getConfiguration(), uploads, directory, pattern);
        }
    }

    /** The writer of a file that is uploaded when it is closed. */
    public static class Uploading extends OutputWriter {
        private final OutputWriter other;
        private final String path;
        private final File place;
        private final Configuration settings;
        private final CollectionAccumulator<String> uploads;
        private final String directory, pattern;

        Uploading(OutputWriter other, String path, File place, Configuration settings,
                  CollectionAccumulator<String> uploads, String directory, String pattern) {
            this.other = other;
            this.path = path;
            this.place = place;
            this.settings = settings;
            this.uploads = uploads;
            this.directory = directory;
            this.pattern = pattern;
        }

        @Override
        public String path() {
            return path;
        }

        @Override
        public void write(InternalRow row) {
            other.write(row);
        }

        /** Closes the file and uploads it. Spark also closes the files of attempts that failed. */
        @Override
        public void close() {
            try {
                other.close();
                File[] files = place.listFiles();
                for (int at = 0; files != null && at < files.length && !TaskContext.get().isFailed(); ++at) {
                    if (!files[at].getName().startsWith(".")) upload(files[at]);
                }
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            } finally {
                FileUtil.fullyDelete(place);
            }
        }

        private void upload(File file) throws IOException {
            Map<String, Object> upload = InPlaceUploads.upload(file, directory + "/" + String.format(pattern, writer()), settings);
            upload.put("file", file.getName());
            upload.put("size", file.length());
            uploads.add(Messages.text(upload));
        }

        /** Returns the value of the column by which Spark routes rows to files; without such a column each task is a writer. */
        private int writer() {
            int at = path.lastIndexOf(WRITER);
            if (at < 0) return TaskContext.get().partitionId();
            return Integer.parseInt(path.substring(at + WRITER.length(), path.indexOf('/', at + 1)));
        }
    }

    /** A listener that aborts the uploads of a failed attempt. */
    public static class Abandoning implements TaskFailureListener {
        private final Map<String, Object> upload;
        private final Configuration settings;

        Abandoning(Map<String, Object> upload, Configuration settings) {
            this.upload = upload;
            this.settings = settings;
        }

        @Override
        public void onTaskFailure(TaskContext task, Throwable error) {
            try {
                done(ended(upload, false, settings));
            } catch (IOException left) {
                error.addSuppressed(left);
            }
        }
    }

    /** A stream that can be read again, since a part may have to be sent again. */
    public static class Rewindable extends FilterInputStream {
        private final FileChannel channel;
        private long marked;

        Rewindable(FileInputStream in) {
            super(in);
            this.channel = in.getChannel();
        }

        @Override
        public boolean markSupported() {
            return true;
        }

        @Override
        public void mark(int limit) {
            try {
                marked = channel.position();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        @Override
        public void reset() throws IOException {
            channel.position(marked);
        }
    }

    private static MultipartUploader uploader(Path target, Configuration settings) throws IOException {
        FileSystem store = target.getFileSystem(settings);
        Object uploader = store.createMultipartUploader(target.getParent()).build();
        return (MultipartUploader) uploader;
    }

    private static Object done(CompletableFuture<?> future) throws IOException {
        try {
            return future.get();
        } catch (ExecutionException error) {
            if (error.getCause() instanceof IOException) throw (IOException) error.getCause();
            throw new IOException(error.getCause());
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException();
        }
    }

    private static String text(ByteBuffer bytes) {
        byte[] all = new byte[bytes.remaining()];
        bytes.get(all);
        return Base64.getEncoder().encodeToString(all);
    }

    private static ByteBuffer bytes(String text) {
        return ByteBuffer.wrap(Base64.getDecoder().decode(text));
    }
}
