package transactionmetastore.spark.catalog;

/** The catalog where Spark's SQL has no constraints but NOT NULL and DEFAULT. */
abstract class ConstrainedCatalog extends AcidCatalogBase {}
