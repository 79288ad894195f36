package transactionmetastore.spark.txn;

/** The kind of a statement's write of a table, as client/lock_plan.py names it. */
public enum WriteKind {
    INSERT, UPDATE, DELETE, MERGE_INSERT, INSERT_OVERWRITE, DDL_EXCLUSIVE
}
