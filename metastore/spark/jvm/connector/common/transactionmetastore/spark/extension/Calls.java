package transactionmetastore.spark.extension;

import java.util.List;
import org.apache.spark.sql.catalyst.analysis.ResolvedProcedure;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Call;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.procedures.Procedure;
import scala.jdk.javaapi.CollectionConverters;
import transactionmetastore.spark.procedure.Procedures;

/** Builder of plans of CALL. */
final class Calls {
    private Calls() {}

    /** Builds the plan that calls a procedure. "catalog" need not have the procedure. */
    static LogicalPlan of(ProcedureCatalog catalog, Procedure procedure, List<Expression> arguments) {
        Identifier ident = Identifier.of(new String[] {Procedures.NAMESPACE}, procedure.name());
        return new Call(new ResolvedProcedure(catalog, ident, procedure), CollectionConverters.asScala(arguments).toSeq(), true);
    }
}
