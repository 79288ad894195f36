package transactionmetastore.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import transactionmetastore.spark.files.InPlaceUploads;
import transactionmetastore.spark.files.Messages;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.table.TableShape;
import transactionmetastore.spark.txn.AcidTransaction;

/**
 * A publication: it gives complete files the final names of the planner's plan, and removes them after a failure.
 *
 * Rule: a directory is complete before it gets its name, and deletes get theirs before inserts: a reader who lists in
 * between sees no row twice. A failure may leave some files (on object stores a rename copies file by file), so everything
 * that may be there is removed; if that fails too, the transaction must not be committed. On S3 an upload gets its name
 * when it is completed. Uploads are aborted before completed ones are removed: a late request then completes nothing.
 */
final class Publication {
    private final Configuration settings;
    private final TableShape table;
    private final List<Path> targets = new ArrayList<>();
    private final Map<String, String> uploads = new HashMap<>();

    Publication(Configuration settings, TableShape table) {
        this.settings = settings;
        this.table = table;
    }

    /** A factory of files without rows. */
    interface EmptyFiles {
        void make(Path path) throws IOException;
    }

    /** Notes the uploads among a statement's files. */
    void has(List<WrittenFile> files) {
        for (WrittenFile file : files) if (file.upload() != null) uploads.put(file.path(), file.upload());
    }

    /** Aborts the uploads of a statement that has published nothing. */
    void abortUploads() {
        try {
            end(uploads.values(), false);
        } catch (IOException error) {
            // an upload that is not completed is no file, and the bucket's lifecycle rule removes it
        }
    }

    /** Publishes the files. "plan": the planner's answer to "publish". */
    void publish(JsonNode plan, boolean isInPlace, EmptyFiles empty) {
        try {
            List<JsonNode> directories = new ArrayList<>();
            for (String kind : List.of("deletes", "inserts")) plan.path(kind).forEach(directories::add);
            for (JsonNode directory : directories) {
                if (isInPlace) requireTargets(directory); else fill(new Path(directory.path("from").asText()), directory, empty);
            }
            for (JsonNode directory : directories) name(directory, isInPlace, empty);
        } catch (IOException | RuntimeException error) {
            try {
                withdraw();
            } catch (RuntimeException left) {
                left.addSuppressed(error);
                throw left;
            }
            throw new AcidException("WRITE_FAILED", "What was written of " + table.name() + " could not be published: "
                + error.getMessage() + ". Nothing of it is left.", error);
        }
    }

    /** Refuses rows that a base of the same transaction would hide, as it hides all deltas of its write id. */
    void requireSeen(JsonNode plan, AcidTransaction transaction) {
        for (String kind : List.of("deletes", "inserts")) {
            for (JsonNode directory : plan.path(kind)) {
                Path to = new Path(directory.path("to").asText());
                String location = to.getParent().toString();
                boolean isBase = to.getName().startsWith("base_");
                if (transaction.hasOverwritten(location)) {
                    throw new AcidException("InvalidOperationError", "This transaction has overwritten " + location + " already: after "
                        + "INSERT OVERWRITE or TRUNCATE no reader would see its further rows there"
                        + (isBase ? ", and it can be done once" : "") + ". Write all rows by one query, or use another transaction.");
                }
                if (isBase) transaction.overwrites(location);
            }
        }
    }

    /** Removes the published directories, which no reader has seen. */
    void withdraw() {
        IOException failure = null;
        try {
            end(uploads.values(), false);
        } catch (IOException error) {
            failure = error;
        }
        for (Path target : targets) {
            try {
                FileSystem store = target.getFileSystem(settings);
                if (!store.delete(target, true) && store.exists(target)) failure = new IOException(target + " is still there");
            } catch (IOException error) {
                failure = error;
            }
        }
        targets.clear();
        if (failure != null) throw leftOver(failure);
    }

    private AcidException leftOver(IOException failure) {
        return new AcidException("LEFT_OVER", "What was written of " + table.name() + " cannot be removed, and is not "
            + "to be committed: " + failure.getMessage(), failure);
    }

    /**
     * Refuses uploads that cannot get the planner's names: a partition was registered at another location since the
     * statement began.
     */
    private static void requireTargets(JsonNode directory) throws IOException {
        for (JsonNode file : directory.path("files")) {
            String to = directory.path("to").asText() + "/" + file.path(1).asText();
            if (new Path(to).equals(new Path(file.path(0).asText()))) continue;
            throw new IOException(file.path(0).asText() + " was to be " + to + ", since its partition has got another place "
                + "meanwhile. Run the statement again");
        }
    }

    /** Moves all files of a directory to their place, except uploads. */
    private void fill(Path there, JsonNode directory, EmptyFiles empty) throws IOException {
        FileSystem store = there.getFileSystem(settings);
        store.mkdirs(there);
        for (JsonNode file : directory.path("files")) {
            if (uploads.containsKey(file.path(0).asText())) continue;
            rename(store, new Path(file.path(0).asText()), new Path(there, file.path(1).asText()));
        }
        for (JsonNode name : directory.path("empty")) empty.make(new Path(there, name.asText()));
        for (JsonNode text : directory.path("write")) {
            try (FSDataOutputStream out = store.create(new Path(there, text.path(0).asText()), true)) {
                out.write(text.path(1).asText().getBytes(StandardCharsets.UTF_8));
            }
        }
    }

    private void name(JsonNode directory, boolean isInPlace, EmptyFiles empty) throws IOException {
        Path from = new Path(directory.path("from").asText()), to = new Path(directory.path("to").asText());
        FileSystem store = to.getFileSystem(settings);
        if (!isInPlace) store.mkdirs(to.getParent());
        if (store.exists(to)) {
            throw new IOException(to + " exists already. A transaction can overwrite a table or partition once");
        }
        targets.add(to);
        if (!isInPlace) {
            rename(store, from, to);
            return;
        }
        fill(to, directory, empty);
        List<String> here = new ArrayList<>();
        for (JsonNode file : directory.path("files")) here.add(uploads.get(file.path(0).asText()));
        end(here, true);
    }

    private void end(Collection<String> ended, boolean isComplete) throws IOException {
        new InPlaceUploads().end(Messages.listed(List.copyOf(ended)), isComplete, settings);
    }

    private static void rename(FileSystem store, Path from, Path to) throws IOException {
        if (!store.rename(from, to)) throw new FileNotFoundException("Renaming " + from + " to " + to + " failed");
    }
}
