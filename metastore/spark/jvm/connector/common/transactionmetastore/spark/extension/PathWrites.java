package transactionmetastore.spark.extension;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpTimeoutException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.WriteToStream;
import org.apache.spark.sql.execution.command.InsertIntoDataSourceDirCommand;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;
import org.apache.spark.sql.hive.execution.InsertIntoHiveDirCommand;
import org.apache.spark.sql.hive.execution.InsertIntoHiveTable;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;
import transactionmetastore.spark.catalog.AcidCatalog;
import transactionmetastore.spark.catalog.AcidCatalogBase;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.planner.PlannerClient;

/**
 * A check that refuses writes by path into the directory of a transactional table, or of a directory around it.
 *
 * Spark asks no catalog for such a write: the rows would lie beside the transactions, and an overwrite would remove the
 * table's files. If no planner can be asked whose directory it is, the write goes on: plain files must not need a planner.
 */
final class PathWrites extends AbstractFunction1<LogicalPlan, BoxedUnit> {
    private static final String STREAMED = "FileSink[";
    private static final String CATALOG = "spark.sql.catalog.";
    private static final Duration LONGEST = Duration.ofSeconds(10), PAUSE = Duration.ofMinutes(1);
    /** Planners that did not answer in time, each with the time at which it is asked again. */
    private static final Map<PlannerClient, Instant> SILENT = new ConcurrentHashMap<>();

    private final org.apache.spark.sql.classic.SparkSession spark;

    PathWrites(SparkSession spark) {
        this.spark = (org.apache.spark.sql.classic.SparkSession) spark;
    }

    @Override
    public BoxedUnit apply(LogicalPlan plan) {
        List<String> places = new ArrayList<>();
        collect(plan, places);
        for (String place : places) requireNobodys(place);
        return BoxedUnit.UNIT;
    }

    private static void collect(LogicalPlan plan, List<String> places) {
        if (plan instanceof InsertIntoHadoopFsRelationCommand write && isElsewhere(write.catalogTable())) places.add(write.outputPath().toString());
        if (plan instanceof InsertIntoHiveTable write && isElsewhere(Option.apply(write.table()))) add(write.table().storage(), places);
        if (plan instanceof InsertIntoHiveDirCommand write) add(write.storage(), places);
        if (plan instanceof InsertIntoDataSourceDirCommand write) add(write.storage(), places);
        if (plan instanceof SaveIntoDataSourceCommand write && write.options().contains("path")) {
            places.add(write.options().apply("path"));
        }
        if (plan instanceof WriteToStream write) {
            String sink = write.sink().toString();  // Spark shows the path nowhere else
            if (sink.startsWith(STREAMED)) places.add(sink.substring(STREAMED.length(), sink.length() - 1));
        }
        for (var children = plan.children().iterator(); children.hasNext();) collect(children.next(), places);
    }

    /** Returns true for a managed table, which has a directory of its own. */
    private static boolean isElsewhere(Option<CatalogTable> table) {
        return table.isEmpty() || !table.get().tableType().equals(CatalogTableType.MANAGED());
    }

    private static void add(CatalogStorageFormat storage, List<String> places) {
        Option<URI> place = storage.locationUri();
        if (place.isDefined()) places.add(new Path(place.get()).toString());
    }

    private void requireNobodys(String place) {
        for (String catalog : ours()) {
            String table = table(catalog, place);
            if (!table.isEmpty()) throw new AcidException("UNSUPPORTED", "Nothing is written to " + place + ", because the transactional table "
                + table + " has its files there: readers would miss the new ones, or the table would lose its own. Use INSERT INTO "
                + table + ", writeTo(\"" + table + "\").append() or insertInto, or write somewhere else.");
        }
    }

    /** Returns the names of our catalogs, also of those that Spark has not loaded yet. */
    private List<String> ours() {
        List<String> names = new ArrayList<>();
        CollectionConverters.asJava(spark.sessionState().conf().getAllConfs()).forEach((key, value) -> {
            boolean isOurs = key.startsWith(CATALOG) && value.equals(AcidCatalog.class.getName());
            if (isOurs && key.indexOf('.', CATALOG.length()) < 0) names.add(key.substring(CATALOG.length()));
        });
        return names;
    }

    /** Returns the table at a place; "" where there is none, or no planner answers. */
    private String table(String name, String place) {
        try {
            Path path = new Path(place);
            String whole = path.getFileSystem(spark.sessionState().newHadoopConf()).makeQualified(path).toString();
            return spark.sessionState().catalogManager().catalog(name) instanceof AcidCatalogBase catalog ? table(catalog.planner(), whole) : "";
        } catch (IOException | RuntimeException error) {
            return "";
        }
    }

    private static String table(PlannerClient planner, String place) {
        if (Instant.now().isBefore(SILENT.getOrDefault(planner, Instant.MIN))) return "";
        try {
            return planner.call("table_at", Map.of("place", place), LONGEST).path("table").asText("");
        } catch (AcidException error) {
            if (error.getCause() instanceof HttpTimeoutException) SILENT.put(planner, Instant.now().plus(PAUSE));
            throw error;
        }
    }
}
