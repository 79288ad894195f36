package transactionmetastore.spark.extension;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.read.ReadsEnd;

/** The rules and checks that a session needs besides its catalog. Users set catalog.AcidExtensions in spark.sql.extensions. */
public class SessionRules extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
    private static final Set<SparkSessionExtensions> APPLIED = Collections.newSetFromMap(new WeakHashMap<>());

    /** Returns the session if it has the rules, or a clone that has them. */
    public SparkSession inSession(SparkSession session) {
        var spark = (org.apache.spark.sql.classic.SparkSession) session;
        synchronized (APPLIED) {
            if (APPLIED.contains(spark.extensions())) return spark;
        }
        apply(spark.extensions());
        return spark.cloneSession();
    }

    @Override
    public BoxedUnit apply(SparkSessionExtensions session) {
        requireRightJar(org.apache.spark.package$.MODULE$.SPARK_VERSION());
        synchronized (APPLIED) {
            APPLIED.add(session);
        }
        session.injectHintResolutionRule(spark -> new RoutingRule((org.apache.spark.sql.classic.SparkSession) spark));
        session.injectPostHocResolutionRule(spark -> new TextTargetsRule());
        session.injectPostHocResolutionRule(spark -> new KeysLastRule());
        session.injectPostHocResolutionRule(spark -> {
            ReadsEnd.watch(spark.sparkContext());
            return new StatementRule();
        });
        session.injectPlanNormalizationRule(spark -> new QueryReadRule());
        session.injectOptimizerRule(spark -> new ReaderPadsRule());
        session.injectPreCBORule(spark -> new MergeKeysRule(spark));
        session.injectPreCBORule(spark -> new HiddenOperandsRule());
        session.injectCheckRule(spark -> new AssignedColumns());
        session.injectCheckRule(spark -> new PathWrites(spark));
        return BoxedUnit.UNIT;
    }

    /** Refuses the jar of another Spark version: some statement would fail later because a class is missing. */
    private static void requireRightJar(String spark) {
        String[] number = spark.split("\\.");
        String wanted = "spark-" + number[0] + "." + number[1] + ".jar";
        try (InputStream name = SessionRules.class.getResourceAsStream("/transactionmetastore/spark/compiled-for")) {
            String jar = name == null ? wanted : new String(name.readAllBytes(), StandardCharsets.UTF_8);
            if (!jar.equals(wanted)) {
                throw new AcidException("WRONG_JAR", "This is Spark " + spark + ", and the jar of its catalog for ACID tables is "
                    + jar + ": it needs " + wanted + ", of the same transaction-metastore.");
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
