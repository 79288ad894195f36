package transactionmetastore.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.txn.AcidTransaction;

/**
 * Gives complete files the final names of the planner's plan, and removes them after a failure.
 *
 * Rule: a directory is complete before it gets its name, and deletes get theirs before inserts: a reader who lists in
 * between sees nothing twice. A failure may leave a part (on object stores a rename copies file by file), so everything
 * that may be there is removed; if that fails too, the transaction must not be committed.
 */
final class Publication {
    private final Configuration settings;
    private final TableShape table;
    private final List<Path> targets = new ArrayList<>();

    Publication(Configuration settings, TableShape table) {
        this.settings = settings;
        this.table = table;
    }

    /** Makes a file without rows. */
    interface EmptyFiles {
        void make(Path path) throws IOException;
    }

    /** "plan": the planner's answer to "publish". */
    void publish(JsonNode plan, EmptyFiles empty) {
        try {
            for (String kind : List.of("deletes", "inserts")) for (JsonNode directory : plan.path(kind)) complete(directory, empty);
            for (String kind : List.of("deletes", "inserts")) for (JsonNode directory : plan.path(kind)) name(directory);
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

    /** Refuse rows that a base of the same transaction would hide, as it hides all deltas of its write id. */
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

    /** Remove the published directories, which nobody has seen. */
    void withdraw() {
        IOException failure = null;
        for (Path target : targets) {
            try {
                FileSystem store = target.getFileSystem(settings);
                if (!store.delete(target, true) && store.exists(target)) failure = new IOException(target + " is still there");
            } catch (IOException error) {
                failure = error;
            }
        }
        targets.clear();
        if (failure != null) {
            throw new AcidException("LEFT_OVER", "What was written of " + table.name() + " cannot be removed, and is not "
                + "to be committed: " + failure.getMessage(), failure);
        }
    }

    /** Complete a directory in staging. */
    private void complete(JsonNode directory, EmptyFiles empty) throws IOException {
        Path from = new Path(directory.path("from").asText());
        FileSystem store = from.getFileSystem(settings);
        store.mkdirs(from);
        for (JsonNode file : directory.path("files")) {
            rename(store, new Path(file.path(0).asText()), new Path(from, file.path(1).asText()));
        }
        for (JsonNode name : directory.path("empty")) empty.make(new Path(from, name.asText()));
        for (JsonNode text : directory.path("write")) {
            try (FSDataOutputStream out = store.create(new Path(from, text.path(0).asText()), true)) {
                out.write(text.path(1).asText().getBytes(StandardCharsets.UTF_8));
            }
        }
    }

    private void name(JsonNode directory) throws IOException {
        Path from = new Path(directory.path("from").asText()), to = new Path(directory.path("to").asText());
        FileSystem store = to.getFileSystem(settings);
        store.mkdirs(to.getParent());
        if (store.exists(to)) {
            throw new IOException(to + " exists already. A transaction can overwrite a table or partition once");
        }
        targets.add(to);
        rename(store, from, to);
    }

    private static void rename(FileSystem store, Path from, Path to) throws IOException {
        if (!store.rename(from, to)) throw new FileNotFoundException("Renaming " + from + " to " + to + " failed");
    }
}
