package transactionmetastore.spark.catalog;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import scala.Function1;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.read.ReadsEnd;
import transactionmetastore.spark.write.AssignedColumns;

/** What a session needs besides the catalog, in spark.sql.extensions. */
public final class AcidExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
    private static final Set<SparkSessionExtensions> APPLIED = Collections.newSetFromMap(new WeakHashMap<>());

    /** The session, if it has them; else a clone that has. */
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
        session.injectHintResolutionRule(new AbstractFunction1<>() {
            @Override
            public Rule<LogicalPlan> apply(SparkSession spark) {
                return new RoutingRule(spark);
            }
        });
        session.injectPostHocResolutionRule(new AbstractFunction1<>() {
            @Override
            public Rule<LogicalPlan> apply(SparkSession spark) {
                return new TextTargetsRule();
            }
        });
        session.injectPostHocResolutionRule(new AbstractFunction1<>() {
            @Override
            public Rule<LogicalPlan> apply(SparkSession spark) {
                return new KeysLastRule();
            }
        });
        session.injectPostHocResolutionRule(new AbstractFunction1<>() {
            @Override
            public Rule<LogicalPlan> apply(SparkSession spark) {
                ReadsEnd.watch(spark.sparkContext());
                return new StatementRule();
            }
        });
        session.injectPlanNormalizationRule(new AbstractFunction1<>() {
            @Override
            public Rule<LogicalPlan> apply(SparkSession spark) {
                return new QueryReadRule();
            }
        });
        session.injectOptimizerRule(new AbstractFunction1<>() {
            @Override
            public Rule<LogicalPlan> apply(SparkSession spark) {
                return new ReaderPadsRule();
            }
        });
        session.injectPreCBORule(new AbstractFunction1<>() {
            @Override
            public Rule<LogicalPlan> apply(SparkSession spark) {
                return new MergeKeysRule(spark);
            }
        });
        session.injectPreCBORule(new AbstractFunction1<>() {
            @Override
            public Rule<LogicalPlan> apply(SparkSession spark) {
                return new HiddenOperandsRule();
            }
        });
        session.injectCheckRule(new AbstractFunction1<>() {
            @Override
            public Function1<LogicalPlan, BoxedUnit> apply(SparkSession spark) {
                return new AssignedColumns();
            }
        });
        session.injectCheckRule(new AbstractFunction1<>() {
            @Override
            public Function1<LogicalPlan, BoxedUnit> apply(SparkSession spark) {
                return new PathWrites(spark);
            }
        });
        return BoxedUnit.UNIT;
    }

    /** With the jar of another version some statement would fail later, for want of a class. */
    private static void requireRightJar(String spark) {
        String[] number = spark.split("\\.");
        String wanted = "spark-" + number[0] + "." + number[1] + ".jar";
        try (InputStream name = AcidExtensions.class.getResourceAsStream("/transactionmetastore/spark/compiled-for")) {
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
