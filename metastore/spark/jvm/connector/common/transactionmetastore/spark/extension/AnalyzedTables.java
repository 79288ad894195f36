package transactionmetastore.spark.extension;

import java.util.List;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.AnalyzeColumn;
import org.apache.spark.sql.catalyst.plans.logical.AnalyzeTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.types.DataTypes;
import scala.jdk.javaapi.CollectionConverters;
import transactionmetastore.spark.catalog.AcidCatalogBase;
import transactionmetastore.spark.planner.AcidException;
import transactionmetastore.spark.procedure.Procedures;

/** The rule for ANALYZE TABLE of a transactional table, which becomes CALL system.analyze. */
record AnalyzedTables(CatalogNames names) {
    LogicalPlan whole(AnalyzeTable analyze) {
        CatalogNames.Found table = found(analyze.child());
        if (table == null) return analyze;
        if (analyze.partitionSpec().nonEmpty()) {
            throw new AcidException("UNSUPPORTED", "ANALYZE TABLE notes rows and bytes of all of "
                + String.join(".", CollectionConverters.asJava(((UnresolvedTableOrView) analyze.child()).multipartIdentifier()))
                + ": leave out PARTITION.");
        }
        return called(table, List.of());
    }

    LogicalPlan columns(AnalyzeColumn analyze) {
        CatalogNames.Found table = found(analyze.child());
        if (table == null) return analyze;
        return called(table, analyze.allColumns() ? List.of("*") : CollectionConverters.asJava(analyze.columnNames().get()));
    }

    private CatalogNames.Found found(LogicalPlan child) {
        return child instanceof UnresolvedTableOrView name ? names.foundBehindViews(name.multipartIdentifier()) : null;
    }

    private static LogicalPlan called(CatalogNames.Found table, List<String> columns) {
        Identifier procedure = Identifier.of(new String[] {Procedures.NAMESPACE}, "analyze");
        return Calls.of(table.catalog(), table.catalog().loadProcedure(procedure), List.of(
            Literal.create(AcidCatalogBase.fullName(table.ident()), DataTypes.StringType),
            Literal.create(columns.toArray(new String[0]), DataTypes.createArrayType(DataTypes.StringType))));
    }
}
