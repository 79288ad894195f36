import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;

/** The connector's client of the planner without a Spark: JSON lines in, what it was answered out. */
public class PlannerCaller {
  public static void main(String[] none) throws Exception {
    ObjectMapper json = new ObjectMapper();
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null;) {
      JsonNode wanted = json.readTree(line);
      Configuration settings = new Configuration(false);
      wanted.path("settings").properties().forEach(one -> settings.set(one.getKey(), one.getValue().asText()));
      Map<?, ?> answer;
      try {
        @SuppressWarnings("unchecked")
        Map<String, ?> arguments = json.convertValue(wanted.path("arguments"), Map.class);
        PlannerClient client = PlannerClient.of(wanted.path("planner").asText(), settings);
        answer = Map.of("answer", client.call(wanted.path("call").asText(), arguments));
      } catch (AcidException error) {
        answer = Map.of("error", error.getCondition(), "message", error.getMessage());
      }
      out.println(json.writeValueAsString(answer));
    }
  }
}
