package transactionmetastore.spark.catalog;

import transactionmetastore.spark.extension.SessionRules;

/** The name of SessionRules in spark.sql.extensions, which users' settings have. */
public final class AcidExtensions extends SessionRules {}
