package transactionmetastore.spark.planner;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;

/**
 * Calls to the planner, which holds the rules of ACID tables: metastore/planner.
 *
 * One client for each planner and JVM; it may be used by any thread. An answer that did not come is not asked for again
 * here: only the planner knows which calls may be repeated.
 */
public final class PlannerClient {
    private static final Duration CONNECT = Duration.ofSeconds(10);
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, PlannerClient> CLIENTS = new ConcurrentHashMap<>();
    private static final HttpClient HTTP =
        HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(CONNECT).build();

    private final String address;

    private PlannerClient(String address) {
        this.address = address;
    }

    /** The planner at an address, or where that is empty the one that the metastore of these settings names. */
    public static PlannerClient of(String address, Configuration settings) {
        String found = address.isEmpty() ? PlannerAddress.from(settings) : address;
        return CLIENTS.computeIfAbsent(found.replaceAll("/+$", ""), PlannerClient::new);
    }

    public String address() {
        return address;
    }

    /** The answer to a call. Arguments are texts, numbers, truth values, null, and lists and maps of them. */
    public JsonNode call(String name, Map<String, ?> arguments) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(address + "/v1/" + name))
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofByteArray(encoded(arguments)))
            .build();
        HttpResponse<byte[]> answer;
        try {
            answer = HTTP.send(request, HttpResponse.BodyHandlers.ofByteArray());
        } catch (ConnectException error) {
            PlannerAddress.forget();
            throw new AcidException("PLANNER_UNREACHABLE", "The planner at " + address + " cannot be reached: start "
                + "`metastore planner` (`metastore serve` starts one), or set hive.metastore.planner.uri.", error);
        } catch (IOException error) {
            throw new AcidException("ANSWER_LOST", "The planner at " + address + " did not answer to " + name + ": "
                + error.getMessage() + ". Whether it was done is not known.", error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new AcidException("INTERRUPTED", "Interrupted while waiting for the planner's answer to " + name, error);
        }
        JsonNode body = decoded(name, answer);
        if (answer.statusCode() == 200) return body;
        throw new AcidException(body.path("error").asText("PLANNER_FAILED"), body.path("message").asText(
            "The planner at " + address + " answered " + answer.statusCode() + " to " + name + "."));
    }

    /** Whether somebody else's answer says that a transaction is over. */
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

    private JsonNode decoded(String name, HttpResponse<byte[]> answer) {
        try {
            return JSON.readTree(answer.body());
        } catch (IOException error) {
            throw new AcidException("PLANNER_FAILED", address + " answered " + answer.statusCode() + " to " + name
                + ", and no JSON: is that the address of a planner?", error);
        }
    }
}
