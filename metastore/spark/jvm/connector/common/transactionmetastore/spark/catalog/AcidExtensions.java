package transactionmetastore.spark.catalog;

import transactionmetastore.spark.extension.SessionRules;

/** The SessionRules under the name that users set in spark.sql.extensions. */
public final class AcidExtensions extends SessionRules {}
