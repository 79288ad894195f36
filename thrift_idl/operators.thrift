// Calls that Hive's interface does not have. For operators: why something waits, what became of a transaction. For
// streaming queries: commits that remember which batch they were. For readers: tables as of an instant.
// Served on the same port as Hive's. Names begin with metastore_, so that no version of Hive can ever mean something
// else by them; a server without them answers UNKNOWN_METHOD. Instants are milliseconds since 1970, durations
// milliseconds by the database's clock. Words (states, types, operations) are text, so that a new word breaks no client.

namespace py metastore.thrift_gen.operators

include "hive_metastore.thrift"

// What became of a transaction.
struct TxnOutcome {
  1: required i64 txnid,
  2: required string outcome,  // open, committed, aborted, never_opened, unknown
  3: required string reason,  // a sentence: how that is known, or why it is not
  4: optional i64 endedAt,
}

// Something that a transaction wrote, or said that it would.
struct TxnWrite {
  1: required string catName,
  2: required string dbname,
  3: optional string tablename,
  4: optional string partitionname,
  5: required string operation,  // insert, update, delete, change (an update or delete of some of what it wrote), compact
  6: optional i64 writeId,
}

// A lock as it is, or as it was when its transaction was aborted.
struct LockClaim {
  1: required i64 lockid,
  2: required string catName,
  3: required string dbname,
  4: optional string tablename,
  5: optional string partitionname,
  6: required string type,  // shared_read, shared_write, excl_write, exclusive
  7: required string state,  // acquired, waiting
  8: optional i64 requestedAt,
  9: optional i64 acquiredAt,
}

// The write conflict that a transaction lost. The winner's owner is set while the winner's record is kept.
struct TxnConflict {
  1: required i64 winner,
  2: required i64 winnerCommitId,
  3: required string object,
  4: required string operation,
  5: required string winnerOperation,
  6: optional string user,
  7: optional string hostname,
  8: optional string agentInfo,
}

// A transaction's life as far as it is recorded. Where nothing is, only the outcome is set.
struct TxnLife {
  1: required TxnOutcome outcome,
  2: optional string type,
  3: optional string user,
  4: optional string hostname,
  5: optional string agentInfo,
  6: optional i64 startedAt,
  7: optional i64 lastHeartbeatAt,
  8: optional i32 heartbeatCount,
  9: optional i64 longestGapMs,
  10: optional i64 expiresInMs,  // only of an open one; negative: the next pass of the reaper ends it
  11: optional i64 commitId,
  12: optional i32 abortCode,
  13: optional string abortReason,
  14: required list<TxnWrite> writes,
  15: required i32 writeCount,  // more than there are in the list: it is cut
  16: required list<LockClaim> locks,
  17: required i32 lockCount,
  18: optional TxnConflict conflict,
  19: optional bool fromHistory,  // the transaction's own record is gone, this is what was kept
}

// Exactly one of: a lock request, a transaction, a table.
struct LockWhyRequest {
  1: optional i64 lockid,
  2: optional i64 txnid,
  3: optional string catName,
  4: optional string dbname,
  5: optional string tablename,
}

// A transaction, or a lock request without one, that holds locks or waits for them.
struct LockOwner {
  1: required i64 txnid,  // 0: none, the lock request stands for itself
  2: required i64 lockid,  // the first request of the owner
  3: required string user,
  4: required string hostname,
  5: required string agentInfo,
  6: required i64 ageMs,  // since the transaction was opened, or the lock asked for
  7: required i64 lastHeartbeatAt,
  8: required i64 silentMs,
  9: required i64 expiresInMs,  // until the reaper may end it if it stays silent; negative: its next pass does
  10: required string endsWith,  // the command that ends it
  11: required list<LockClaim> claims,  // what it waits for itself, and what it holds that the others here want
  12: required list<i32> waitsFor,  // places in the list of owners
  13: required bool root,  // waits for nobody
  14: required bool inCycle,
  15: required bool asked,  // the question was about this one
}

// Owners in the order of the walk: who was asked about first, then those whom these wait for, and so on.
struct LockWhyResponse {
  1: required bool found,
  2: required bool blocked,
  3: required list<LockOwner> owners,
  4: required string explanation,
}

// A deadlock that was ended by aborting one of its transactions.
struct EndedDeadlock {
  1: required i64 foundAt,
  2: required i64 victim,
  3: required string explanation,  // the whole circle, the victim first
}

// A batch of a streaming query, as the table that it goes into remembers it.
struct StreamBatch {
  1: required string catName,
  2: required string dbname,
  3: required string tablename,
  4: required string queryId,
  5: required i64 batchId,
  6: required string plan,  // a digest of what of its source the batch is made of: a repetition has the same
}

// The last batch of a query that is committed.
struct StreamPosition {
  1: required StreamBatch batch,
  2: required i64 txnid,
  3: required i64 committedAt,
}

struct CommitBatchRequest {
  1: required i64 txnid,
  2: optional bool exclWriteEnabled,  // as in CommitTxnRequest
  3: required StreamBatch batch,
}

// What a transaction that is committed did to a table, as far as it is on record.
struct TableCommit {
  1: required i64 writeId,
  2: required i64 txnid,
  3: required string user,
  4: required string hostname,
  5: required string agentInfo,
  6: required i64 startedAt,
  7: required i64 committedAt,
  8: required list<string> operations,  // as in TxnLife: insert, update, delete, ... or change where no more is known
  9: required i32 partitions,  // in how many; 0 of a table without
  10: required bool complete,  // false: more was written than is on record
  11: optional i64 rowsInserted,  // new versions of updated rows among them; unset where the writer said nothing
  12: optional i64 rowsDeleted,  // old versions of updated rows among them; not those that an overwrite replaced
  13: optional bool aborted,  // it was not committed: what it did to the table counts for nothing
}

// Tables that an open transaction reads, and no others: all that it has read so far among them.
struct ReadRequest {
  1: required i64 txnid,
  2: required list<string> fullTableNames,  // as in GetValidWriteIdsRequest
  3: optional string validTxnList,  // its snapshot, if it has one
}

// What a transaction reads by.
struct ReadSnapshot {
  1: required string validTxnList,
  2: required list<hive_metastore.TableValidWriteIds> tblValidWriteIds,  // in the order of the request
}

// What a transaction writes to a table.
struct WrittenRows {
  1: required string catName,
  2: required string dbname,
  3: required string tablename,
  4: required i64 inserted,
  5: required i64 deleted,
}

// A table or partition, or all partitions of a table with something to compact or to clean.
struct CompactionQuestion {
  1: optional string catName,
  2: required string dbname,
  3: required string tablename,
  4: optional string partitionname,
  5: optional i32 limit,  // of partitions that are looked at; 100 without
  6: optional bool withFiles,  // whether the inputs' files are to be named
}

// Something that readers read now and a compaction would replace.
struct CompactionInput {
  1: required string path,
  2: required string kind,  // base, delta, delete delta, original files
  3: required i32 files,
  4: required i64 bytes,
  5: optional list<string> uris,  // of the files, where that was asked
}

// A threshold of the Initiator; what equals the limit does not exceed it.
struct CompactionThreshold {
  1: required string name,
  2: required double measured,
  3: required double limit,
  4: required bool exceeded,
}

// An open transaction that something waits for.
struct CompactionHolder {
  1: required i64 txnid,
  2: required string user,
  3: required string hostname,
  4: required string agentInfo,
  5: required i64 startedAt,
  6: required i64 lastHeartbeatAt,
  7: optional i64 writeId,  // in this table
  8: required string endsWith,  // the command that ends it
}

// Why something has not happened.
struct CompactionReason {
  1: required string text,
  2: optional i64 since,
  3: required list<CompactionHolder> holders,
  4: optional string endsWith,  // the command that ends it
}

struct CompactionExamined {
  1: optional string partitionname,
  2: optional string type,  // what is due; unset: nothing
  3: required string reason,
  4: required list<CompactionInput> inputs,
  5: required list<CompactionThreshold> thresholds,
  6: required i64 readBytes,  // it writes at most as many
  7: optional i64 takesMs,  // as one took before
  8: required string takesBy,
  9: required CompactionReason compaction,
  10: required list<CompactionReason> cleanings,
  11: required i64 heldBytes,  // below what no new reader reads
  12: required list<CompactionHolder> delays,  // who would delay the cleaning of a compaction that commits now
}

struct CompactionExamination {
  1: required list<CompactionExamined> entities,
  2: required i32 leftOut,  // partitions that were not looked at
}

// What a read of a table or partition costs beside its base.
struct ReadCost {
  1: required string catName,
  2: required string dbname,
  3: required string tablename,
  4: optional string partitionname,
  5: required i32 deltas,
  6: required i64 files,
  7: required i64 bytes,
  8: required i32 obsoleteDeltas,
  9: required double score,  // in files: to open one costs as much as to read 4 MiB
  10: optional double usualScore,  // the mean, of which half are the last twelve hours
  11: optional i64 obsoleteBytes,  // below what no new reader reads
}

service MetastoreOperators {
  // A planner's: what follows on this connection is for somebody else, at this address (HOST:PORT), and with the user
  // whom that caller's certificate named, if any.
  void metastore_act_for(1: string user, 2: string address) throws (1: hive_metastore.MetaException o1)

  // Operators
  TxnOutcome metastore_txn_outcome(1: i64 txnid) throws (1: hive_metastore.MetaException o1)
  TxnLife metastore_txn_explain(1: i64 txnid) throws (1: hive_metastore.MetaException o1)
  LockWhyResponse metastore_lock_why(1: LockWhyRequest request) throws (1: hive_metastore.MetaException o1)
  // The latest first
  list<EndedDeadlock> metastore_show_deadlocks(1: i32 limit) throws (1: hive_metastore.MetaException o1)

  // Of a table that does not exist: NoSuchObjectException; of a table that is not transactional:
  // InvalidOperationException.
  CompactionExamination metastore_compaction_examine(1: CompactionQuestion question)
      throws (1: hive_metastore.NoSuchObjectException o1, 2: hive_metastore.InvalidOperationException o2,
              3: hive_metastore.MetaException o3)
  // The highest score first
  list<ReadCost> metastore_table_top(1: i32 limit) throws (1: hive_metastore.MetaException o1)

  // Readers
  // As get_valid_write_ids at that instant would have answered who reads by no transaction of their own. What is not on
  // record, or still to come: InvalidOperationException.
  hive_metastore.TableValidWriteIds metastore_valid_write_ids_at(1: string catName, 2: string dbname,
      3: string tablename, 4: i64 at)
      throws (1: hive_metastore.InvalidOperationException o1, 2: hive_metastore.MetaException o2)

  // get_open_txns and get_valid_write_ids of a transaction that says what it reads: the Cleaner waits for it with these
  // tables only. What is named later than others may have been cleaned meanwhile: MetaException.
  ReadSnapshot metastore_read_snapshot(1: ReadRequest request)
      throws (1: hive_metastore.NoSuchTxnException o1, 2: hive_metastore.TxnAbortedException o2,
              3: hive_metastore.MetaException o3)

  // The commits of a table with write ids above one, the latest first: those that are on record. With "aborted" aborted
  // transactions that had such a write id, too.
  list<TableCommit> metastore_table_history(1: string catName, 2: string dbname, 3: string tablename, 4: i64 after,
      5: i32 limit, 6: bool aborted)
      throws (1: hive_metastore.MetaException o1)

  // Writers
  // The transactional table whose directory is this place, holds it (not below a hidden name) or lies in it, as "db.table";
  // "": there is none.
  string metastore_table_at(1: string place) throws (1: hive_metastore.MetaException o1)
  // How many rows an open transaction writes, for its history, before it is committed. What was said before is replaced.
  void metastore_note_rows(1: i64 txnid, 2: list<WrittenRows> rows) throws (1: hive_metastore.MetaException o1)

  // Streaming queries
  // How far each query has come in a table; the latest first.
  list<StreamPosition> metastore_stream_positions(1: string catName, 2: string dbname, 3: string tablename)
      throws (1: hive_metastore.MetaException o1)
  // commit_txn, and the batch is remembered in the same PostgreSQL transaction. Of a batch that is remembered already:
  // AlreadyExistsException; of one that does not come after it: InvalidOperationException; the transaction stays open.
  void metastore_commit_batch(1: CommitBatchRequest request)
      throws (1: hive_metastore.NoSuchTxnException o1, 2: hive_metastore.TxnAbortedException o2,
              3: hive_metastore.AlreadyExistsException o3, 4: hive_metastore.InvalidOperationException o4,
              5: hive_metastore.NoSuchObjectException o5, 6: hive_metastore.MetaException o6)
}
