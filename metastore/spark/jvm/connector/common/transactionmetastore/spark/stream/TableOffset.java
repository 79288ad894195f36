package transactionmetastore.spark.stream;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Map;
import org.apache.spark.sql.connector.read.streaming.Offset;
import transactionmetastore.spark.planner.PlannerClient;

/**
 * The position of a stream in a table: a write id. "table": the table's id, which a new table of the same name does not
 * have.
 */
final class TableOffset extends Offset {
    final String table;
    final long writeId;

    TableOffset(String table, long writeId) {
        this.table = table;
        this.writeId = writeId;
    }

    static TableOffset of(String json) {
        try {
            JsonNode read = new ObjectMapper().readTree(json);
            return new TableOffset(read.path("table").asText(), read.path("write_id").asLong());
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException("No offset of a transactional table: " + json, error);
        }
    }

    @Override
    public String json() {
        return PlannerClient.text(Map.of("table", table, "write_id", writeId));
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof TableOffset offset && offset.table.equals(table) && offset.writeId == writeId;
    }

    @Override
    public int hashCode() {
        return table.hashCode() * 31 + Long.hashCode(writeId);
    }
}
