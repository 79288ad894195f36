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
 * A batch of a streaming query, as the table that it goes into remembers it: metastore/txns/streams/rules.py.
 *
 * "plan": a digest of what Spark planned for it: it writes that down before it runs a batch, and repeats that. The same as
 * in metastore/spark/streaming.py, so a query may go on with either.
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

    /** As the planner takes it. */
    public Map<String, Object> argument() {
        return Map.of("table", table, "query", query, "batch", batch, "plan", plan);
    }

    /** Whether the table has it. Throws AcidException where the query was set back: nobody knows which rows are there. */
    public boolean isThere(PlannerClient planner) {
        return planner.call("batch", argument()).path("has_batch").asBoolean();
    }
}
