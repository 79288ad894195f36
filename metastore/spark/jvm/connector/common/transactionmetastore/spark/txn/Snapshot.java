package transactionmetastore.spark.txn;

import java.util.Map;

/**
 * A transaction's snapshot. It has Hive's texts of the valid transactions, and of the valid write ids by table
 * ("db.table"); and the write ids by which the transaction has written tables itself. "isPast": the write ids are those of
 * an earlier transaction, which has ended, so that nothing has kept all of their files.
 */
public record Snapshot(String txns, Map<String, String> writeIds, Map<String, Long> ownWriteIds, boolean isPast) {}
