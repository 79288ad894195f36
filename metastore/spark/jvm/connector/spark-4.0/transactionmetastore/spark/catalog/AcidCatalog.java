package transactionmetastore.spark.catalog;

/** The catalog where Spark has no transactions: each write commits for itself. */
public final class AcidCatalog extends AcidCatalogBase {
    @Override
    AcidCatalogBase another() {
        return new AcidCatalog();
    }
}
