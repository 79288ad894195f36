import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Statements over JDBC, one JSON text a line in, its rows as texts or its error out. Argument: the URL. */
public class JdbcClient {
  public static void main(String[] arguments) throws Exception {
    ObjectMapper json = new ObjectMapper();
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    try (Connection connection = DriverManager.getConnection(arguments[0], "ann", "")) {
      for (String line; (line = in.readLine()) != null;) {
        Map<String, Object> answer = new HashMap<>();
        try (Statement statement = connection.createStatement()) {
          List<List<String>> rows = new ArrayList<>();
          if (statement.execute(json.readValue(line, String.class))) {
            ResultSet result = statement.getResultSet();
            while (result.next()) {
              List<String> row = new ArrayList<>();
              for (int column = 1; column <= result.getMetaData().getColumnCount(); ++column) row.add(result.getString(column));
              rows.add(row);
            }
          }
          answer.put("rows", rows);
        } catch (SQLException error) {
          answer.put("error", error.getMessage());
        }
        out.println(json.writeValueAsString(answer));
      }
    }
  }
}
