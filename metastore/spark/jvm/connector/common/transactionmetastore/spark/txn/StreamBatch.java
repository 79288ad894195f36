package transactionmetastore.spark.txn;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import transactionmetastore.spark.planner.PlannerClient;

/**
 * A batch of a streaming query, as its target table stores it: metastore/txns/streams/rules.py.
 *
 * "plan": a digest of Spark's plan of the batch. Spark writes the plan down before it runs a batch, and repeats the same
 * plan. metastore/spark/streaming.py computes the same digest, so a query may change between Python and Java.
 */
public record StreamBatch(String table, String query, long batch, String plan) {
    public static StreamBatch of(String table, String query, long batch, String checkpoint, Configuration settings) {
        Path offsets = new Path(checkpoint, "offsets/" + batch);
        try (InputStream file = offsets.getFileSystem(settings).open(offsets)) {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            new DigestInputStream(file, digest).readAllBytes();
            return new StreamBatch(table, query, batch, HexFormat.of().formatHex(digest.digest()));
        } catch (FileNotFoundException error) {
            throw new UncheckedIOException("The streaming query into " + table + " has no checkpoint in " + checkpoint
                + ": its option checkpointLocation must be that of the query", error);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Returns the batch in the planner's form. */
    public Map<String, Object> argument() {
        return Map.of("table", table, "query", query, "batch", batch, "plan", plan);
    }

    /**
     * Returns true if the table has the batch. Throws AcidException if the query was set back: then it is unknown which
     * rows the table has.
     */
    public boolean isThere(PlannerClient planner) {
        return planner.call("batch", argument()).path("has_batch").asBoolean();
    }
}
