import static io.trino.testing.TestingSession.testSessionBuilder;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.trino.Session;
import io.trino.plugin.hive.HiveConnectorFactory;
import io.trino.spi.Plugin;
import io.trino.spi.connector.ConnectorFactory;
import io.trino.testing.DistributedQueryRunner;
import io.trino.testing.MaterializedResult;
import io.trino.testing.MaterializedRow;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/** A Trino in one process on the metastore that is named: one JSON request a line in, one JSON answer a line out. */
public class TrinoTables {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
    System.setOut(System.err); // Trino prints where it likes
    Session session = testSessionBuilder().setCatalog("hive").setSchema("default").build();
    try (DistributedQueryRunner trino = DistributedQueryRunner.builder(session).setNodeCount(1).build()) {
      trino.installPlugin(new Plugin() {
        @Override
        public Iterable<ConnectorFactory> getConnectorFactories() {
          return List.of(new HiveConnectorFactory("hive"));
        }
      });
      trino.createCatalog("hive", "hive", Map.of("hive.metastore.uri", args[0], "hive.allow-drop-table", "true"));
      answers.println("{\"answer\": \"ready\"}");
      BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = requests.readLine(); line != null; line = requests.readLine()) {
        ObjectNode answer = JSON.createObjectNode();
        try {
          answer.set("answer", run(trino, session, JSON.readTree(line)));
        } catch (Throwable problem) {
          StringWriter trace = new StringWriter();
          problem.printStackTrace(new PrintWriter(trace));
          answer.put("error", String.valueOf(problem.getMessage()));
          answer.put("trace", trace.toString());
        }
        answers.println(JSON.writeValueAsString(answer));
      }
    } catch (Throwable problem) {
      problem.printStackTrace();
    } finally {
      System.exit(0); // threads of Trino would stay
    }
  }

  private static JsonNode run(DistributedQueryRunner trino, Session session, JsonNode request) {
    Session.SessionBuilder builder = Session.builder(session);
    request.path("properties").fields().forEachRemaining(
        one -> builder.setCatalogSessionProperty("hive", one.getKey(), one.getValue().asText()));
    MaterializedResult result = trino.execute(builder.build(), request.get("sql").asText());
    ObjectNode answer = JSON.createObjectNode();
    ArrayNode rows = answer.putArray("rows");
    for (MaterializedRow row : result) {
      ArrayNode values = rows.addArray();
      row.getFields().forEach(value -> values.add(value == null ? null : text(value)));
    }
    result.getUpdateCount().ifPresent(count -> answer.put("changed", count));
    return answer;
  }

  private static String text(Object value) {
    return value instanceof byte[] ? HexFormat.ofDelimiter(" ").formatHex((byte[]) value) : value.toString();
  }
}
