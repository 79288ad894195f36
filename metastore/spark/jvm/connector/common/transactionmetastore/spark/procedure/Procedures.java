package transactionmetastore.spark.procedure;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import transactionmetastore.spark.planner.PlannerClient;
import transactionmetastore.spark.txn.SessionBlock;

/** The planner's procedures, in the namespace "system" of a catalog. Only the planner knows the list. */
public final class Procedures {
    public static final String NAMESPACE = "system";

    private Procedures() {}

    /** Returns the procedure of a name; if there is none, Spark reports that in its own words. */
    public static UnboundProcedure named(String catalog, PlannerClient planner, SessionBlock block, Identifier ident) {
        String name = ident.name().toLowerCase(Locale.ROOT);
        if (isTheirs(ident.namespace())) {
            for (JsonNode each : all(planner)) {
                if (each.path("name").asText().equals(name)) return new PlannerProcedure(catalog, planner, block, each);
            }
        }
        throw new IllegalArgumentException("There is no procedure " + ident + ": SHOW PROCEDURES IN " + NAMESPACE + " lists them.");
    }

    /** Lists the procedures. "more": the names of those that need no planner. */
    public static Identifier[] list(PlannerClient planner, String[] namespace, List<String> more) {
        List<Identifier> listed = new ArrayList<>();
        if (isTheirs(namespace)) {
            for (String name : more) listed.add(Identifier.of(new String[] {NAMESPACE}, name));
            for (JsonNode each : all(planner)) listed.add(Identifier.of(new String[] {NAMESPACE}, each.path("name").asText()));
        }
        return listed.toArray(new Identifier[0]);
    }

    static boolean isTheirs(String[] namespace) {
        return namespace.length == 1 && namespace[0].equalsIgnoreCase(NAMESPACE);
    }

    private static JsonNode all(PlannerClient planner) {
        return planner.call("procedures", Map.of()).path("procedures");
    }
}
