package transactionmetastore.spark.catalog;

/** The catalog for a Spark without transactions: each statement that writes a table commits its own transaction. */
public final class AcidCatalog extends ConstrainedCatalog {
    static final boolean SPARK_BEGINS_TRANSACTIONS = false;

    @Override
    AcidCatalogBase newCatalog() {
        return new AcidCatalog();
    }
}
