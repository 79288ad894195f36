package transactionmetastore.spark.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.connector.catalog.Identifier;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;
import transactionmetastore.spark.txn.AcidTransaction;

/**
 * A conversion of a plain table, with its files, into a transactional one.
 *
 * The planner says which files need another name, since rows are identified by file names; it alters the table when no file
 * needs one. A transaction that writes nothing keeps others out meanwhile: each rename is also a heartbeat, which fails
 * when the lock is lost.
 */
record Conversion(PlannerClient planner, Configuration settings, Identifier ident, Map<String, String> properties) {
    private static final int LOCK_WAIT_SECONDS = 60;

    void run() {
        Map<String, Object> arguments = new HashMap<>(AcidTransaction.caller());
        arguments.put("txn", planner.call("begin", arguments).path("txn").asLong());
        try {
            arguments.put("writes", List.of(Map.of("table", AcidCatalogBase.fullName(ident), "kind", "DDL_EXCLUSIVE")));
            arguments.put("wait_s", LOCK_WAIT_SECONDS);
            planner.call("lock", arguments);
            boolean isRenamed = true;
            while (isRenamed) isRenamed = renamed(arguments);
        } finally {
            planner.call("abort", arguments);
        }
    }

    /** Returns true if files were renamed. The planner then looks again; it alters the table once no file needs a new name. */
    private boolean renamed(Map<String, Object> transaction) {
        JsonNode renames = planner.call("convert", Map.of("db", AcidCatalogBase.lower(ident.namespace()[0]),
            "table", AcidCatalogBase.lower(ident.name()), "properties", properties)).path("renames");
        for (JsonNode rename : renames) {
            rename(new Path(rename.path(0).asText()), new Path(rename.path(1).asText()));
            planner.call("heartbeat", transaction);
        }
        return !renames.isEmpty();
    }

    private void rename(Path from, Path to) {
        try {
            FileSystem store = from.getFileSystem(settings);
            if (!store.exists(to) && store.rename(from, to)) return;
            throw new IOException("is it read-only, or is a right missing?");
        } catch (IOException error) {
            throw new AcidException("WRITE_FAILED", from + " cannot be renamed to " + to + ", so the table " + ident + " stays what it is: "
                + error.getMessage() + ". Run the statement again afterwards.", error);
        }
    }
}
