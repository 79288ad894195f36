package transactionmetastore.spark.txn;

import java.util.Map;

/** A transaction's snapshot: Hive's texts of the valid transactions, and of the valid write ids by table ("db.table"). */
public record Snapshot(String txns, Map<String, String> writeIds) {}
