package transactionmetastore.spark.txn;

import java.util.Map;

/** What a transaction sees: Hive's texts of the valid transactions, and of the valid write ids of each table ("db.table"). */
public record Snapshot(String txns, Map<String, String> writeIds) {}
