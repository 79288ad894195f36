package transactionmetastore.spark.planner;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import javax.net.ssl.SSLException;
import org.apache.hadoop.conf.Configuration;

/**
 * A client of the planner, which holds the rules of ACID tables: metastore/planner.
 *
 * This JVM has a client for each metastore (or configured planner) and identity; any thread may use it.
 *
 * When no planner can be reached, nothing was done yet, so the client looks up the address again, since it may have
 * changed. A call whose answer was lost is sent again if a second run changes nothing: docs/reference/planner.md lists
 * these calls. So is a call whose planner lost its metastore, as long as there is another metastore: a planner outlives a
 * killed server by some seconds.
 */
public final class PlannerClient {
    private static final Duration CONNECT = Duration.ofSeconds(10), PATIENCE = Duration.ofHours(1);
    private static final int ATTEMPTS = 3;
    private static final Set<String> REPEATABLE = Set.of(
        "table", "table_at", "partitions", "begin", "lock", "snapshot", "heartbeat", "plan", "write", "publish", "commit", "abort");
    private static final String UNREACHABLE = "PLANNER_UNREACHABLE", LOST = "ANSWER_LOST";
    /** Answers of a planner that cannot reach a metastore, or has lost it during the call. */
    private static final String NO_METASTORE = "MetastoreUnreachableError", METASTORE_LOST = "AnswerLostError";
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<Service, PlannerClient> CLIENTS = new ConcurrentHashMap<>();

    /** The identity of a client: the planner or the metastore that names it, and the TLS settings. */
    private record Service(String planner, String metastore, Tls tls) {}

    private final PlannerAddress address;
    private final Tls tls;
    private HttpClient http;

    private PlannerClient(PlannerAddress address, Tls tls) {
        this.address = address;
        this.tls = tls;
    }

    /**
     * Returns the client for a planner's address; for an empty address, the planner is the one that the metastore of these
     * settings names.
     */
    public static PlannerClient of(String address, Configuration settings) {
        Service service = new Service(address, address.isEmpty() ? settings.get("hive.metastore.uris", "") : "", Tls.of(settings));
        return CLIENTS.computeIfAbsent(
            service, key -> new PlannerClient(new PlannerAddress(address, new Configuration(settings)), key.tls));
    }

    /**
     * Calls the planner and returns its answer. Arguments are texts, numbers, truth values, null, and lists and maps of
     * these.
     */
    public JsonNode call(String name, Map<String, ?> arguments) {
        return call(name, arguments, PATIENCE);
    }

    /**
     * Calls the planner. "patience": the longest wait for an answer, since a planner that hangs, or whose host is gone,
     * never answers.
     */
    public JsonNode call(String name, Map<String, ?> arguments, Duration patience) {
        byte[] body = encoded(arguments);
        AcidException lost = null;
        for (int attempt = 1; ; ++attempt) {
            String at = address.get();
            try {
                return answer(at, name, body, patience);
            } catch (AcidException error) {
                boolean isLost = error.is(LOST), isUnreachable = error.is(UNREACHABLE);
                boolean isCutOff = error.is(NO_METASTORE) || error.is(METASTORE_LOST);
                if (!isLost && !isUnreachable && !isCutOff) throw error;
                if ((isLost || error.is(METASTORE_LOST)) && lost == null) lost = error;
                boolean hangs = error.getCause() instanceof HttpTimeoutException && isLost;
                boolean mayRepeat = isUnreachable || REPEATABLE.contains(name) && !hangs;
                boolean mayTryAgain = mayRepeat && (isLost || hasMoved(at, error));
                if (attempt == ATTEMPTS || !mayTryAgain) throw lost != null ? lost : error;
            }
        }
    }

    private boolean hasMoved(String from, AcidException unreachable) {
        try {
            boolean hasMoved = address.hasMovedFrom(from);
            if (hasMoved) forgetConnections();
            return hasMoved;
        } catch (AcidException error) {
            unreachable.addSuppressed(error);
            return false;
        }
    }

    private JsonNode answer(String at, String name, byte[] body, Duration patience) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(at + "/v1/" + name))
            .header("Content-Type", "application/json")
            .timeout(patience)
            .POST(HttpRequest.BodyPublishers.ofByteArray(body))
            .build();
        HttpResponse<byte[]> answer;
        try {
            answer = http().send(request, HttpResponse.BodyHandlers.ofByteArray());
        } catch (ConnectException | HttpConnectTimeoutException error) {
            throw new AcidException(UNREACHABLE, "The planner at " + at + " cannot be reached: start "
                + "`metastore planner` (`metastore serve` starts one), or set hive.metastore.planner.uri.", error);
        } catch (SSLException error) {
            forgetConnections();
            throw new AcidException("TLS_FAILED", "The planner at " + at + " and this Spark do not agree on TLS: "
                + AcidException.reason(error) + ". " + tls.hint(), error);
        } catch (IOException error) {
            throw new AcidException(LOST, "The planner at " + at + " did not answer to " + name + ": "
                + AcidException.reason(error) + ". Whether it was done is not known."
                + (at.startsWith("https:") && tls.own().isBlank() ? " " + tls.hint() : ""), error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new AcidException("INTERRUPTED", "Interrupted while waiting for the planner's answer to " + name, error);
        }
        JsonNode decoded = decoded(at, name, answer);
        if (answer.statusCode() == 200) return decoded;
        throw new AcidException(decoded.path("error").asText("PLANNER_FAILED"), decoded.path("message").asText(
            "The planner at " + at + " answered " + answer.statusCode() + " to " + name + "."));
    }

    private synchronized HttpClient http() {
        if (http == null) {
            HttpClient.Builder builder = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(CONNECT);
            if (address.get().startsWith("https:")) builder.sslContext(tls.context());
            http = builder.build();
        }
        return http;
    }

    /** Forgets the connections, so that the next call reads the certificates again: they may have been renewed. */
    private synchronized void forgetConnections() {
        http = null;
    }

    /** Returns true if the error reports a transaction that has already ended. */
    public static boolean saysThatItIsOver(AcidException error) {
        return error.is("TxnAbortedError") || error.is("NoSuchTxnError") || error.is("TxnNotOpenError");
    }

    public static String text(Object value) {
        try {
            return JSON.writeValueAsString(value);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(error);
        }
    }

    private static byte[] encoded(Map<String, ?> arguments) {
        try {
            return JSON.writeValueAsBytes(arguments);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(error);
        }
    }

    private static JsonNode decoded(String at, String name, HttpResponse<byte[]> answer) {
        try {
            return JSON.readTree(answer.body());
        } catch (IOException error) {
            throw new AcidException("PLANNER_FAILED", at + " answered " + answer.statusCode() + " to " + name
                + ", and no JSON: is that the address of a planner?", error);
        }
    }
}
