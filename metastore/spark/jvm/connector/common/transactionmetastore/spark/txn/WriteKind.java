package transactionmetastore.spark.txn;

/** What a statement does to a table, as client/lock_plan.py names it. */
public enum WriteKind {
    INSERT, UPDATE, DELETE, MERGE_INSERT, INSERT_OVERWRITE, DDL_EXCLUSIVE
}
