package transactionmetastore.spark.catalog;

/** The catalog where Spark has no transactions: each statement that writes a table has one that it commits itself. */
public final class AcidCatalog extends ConstrainedCatalog {
    static final boolean SPARK_BEGINS_TRANSACTIONS = false;

    @Override
    AcidCatalogBase newCatalog() {
        return new AcidCatalog();
    }
}
