package transactionmetastore.spark.catalog;

/** The catalog for a Spark whose SQL has no constraints but NOT NULL and DEFAULT. */
abstract class ConstrainedCatalog extends AcidCatalogBase {}
