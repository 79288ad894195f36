package transactionmetastore.spark.txn;

import java.util.Map;

/**
 * A transaction's snapshot: Hive's texts of the valid transactions, and of the valid write ids by table ("db.table"); and the
 * write ids by which the transaction has written tables itself.
 */
public record Snapshot(String txns, Map<String, String> writeIds, Map<String, Long> ownWriteIds) {}
