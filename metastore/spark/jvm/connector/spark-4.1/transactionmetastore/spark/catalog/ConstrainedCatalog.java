package transactionmetastore.spark.catalog;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.constraints.Check;
import org.apache.spark.sql.connector.catalog.constraints.Constraint;
import org.apache.spark.sql.connector.catalog.constraints.ForeignKey;
import org.apache.spark.sql.connector.catalog.constraints.PrimaryKey;
import org.apache.spark.sql.connector.catalog.constraints.Unique;
import org.apache.spark.sql.connector.expressions.NamedReference;
import transactionmetastore.spark.files.Messages;
import transactionmetastore.spark.planner.AcidException;

/** The catalog for a Spark whose SQL declares constraints: the metastore keeps those of transactional tables. */
abstract class ConstrainedCatalog extends AcidCatalogBase {
    @Override
    public Set<TableCatalogCapability> capabilities() {
        Set<TableCatalogCapability> all = EnumSet.of(TableCatalogCapability.SUPPORT_TABLE_CONSTRAINT);
        all.addAll(super.capabilities());
        return all;
    }

    @Override
    public Table createTable(Identifier ident, TableInfo info) throws TableAlreadyExistsException, NoSuchNamespaceException {
        if (info.constraints().length == 0) return super.createTable(ident, info);
        if (!AcidProvider.class.getName().equals(info.properties().get(TableCatalog.PROP_PROVIDER))) throw unsupported(ident);
        Map<String, String> properties = new HashMap<>(info.properties());
        List<Object> declared = new ArrayList<>(Messages.list(properties.getOrDefault(CONSTRAINTS, "[]")));
        for (Constraint constraint : info.constraints()) declared.add(described(constraint));
        properties.put(CONSTRAINTS, Messages.text(declared));
        return createTable(ident, info.columns(), info.partitions(), properties);
    }

    @Override
    public Table alterTable(Identifier ident, TableChange... changes) throws NoSuchTableException {
        List<Map<String, Object>> added = new ArrayList<>(), dropped = new ArrayList<>();
        for (TableChange change : changes) {
            if (change instanceof TableChange.AddConstraint add) added.add(described(add.constraint()));
            if (change instanceof TableChange.DropConstraint drop) {
                dropped.add(Map.of("name", drop.name(), "if_exists", drop.ifExists()));
            }
        }
        if (added.isEmpty() && dropped.isEmpty()) return super.alterTable(ident, changes);  // no statement has changes of both kinds
        if (acidTable(ident, null) == null) throw unsupported(ident);
        return constrained(ident, added, dropped);
    }

    private static AcidException unsupported(Identifier ident) {
        return new AcidException("UNSUPPORTED", ident + " is no transactional table, and nobody would keep its constraints: leave them "
            + "out, or CREATE it with TBLPROPERTIES ('transactional'='true').");
    }

    /** Returns a constraint in the planner's form: metastore/planner/table_declarations.py. */
    private static Map<String, Object> described(Constraint constraint) {
        Map<String, Object> described = new HashMap<>(Map.of("is_enabled", constraint.enforced(), "is_relied_on", constraint.rely()));
        described.put("name", constraint.name());
        if (constraint instanceof Check check) {
            described.put("kind", "CHECK");
            described.put("value", check.predicateSql());
            described.put("columns", List.of());
        } else if (constraint instanceof PrimaryKey key) {
            described.put("kind", "PRIMARY_KEY");
            described.put("columns", names(key.columns()));
        } else if (constraint instanceof Unique unique) {
            described.put("kind", "UNIQUE");
            described.put("columns", names(unique.columns()));
        } else if (constraint instanceof ForeignKey key) {
            Identifier parent = key.referencedTable();
            described.put("kind", "FOREIGN_KEY");
            described.put("columns", names(key.columns()));
            List<String> name = new ArrayList<>();
            name.add(parent.namespace().length == 0 ? null : lower(parent.namespace()[parent.namespace().length - 1]));
            name.add(lower(parent.name()));
            described.put("parent", name);
            described.put("parent_columns", names(key.referencedColumns()));
        } else {
            throw new AcidException("UNSUPPORTED", "The metastore has no such constraint: " + constraint.toDDL());
        }
        return described;
    }

    private static List<String> names(NamedReference[] columns) {
        List<String> names = new ArrayList<>();
        for (NamedReference column : columns) names.add(lower(String.join(".", column.fieldNames())));
        return names;
    }
}
