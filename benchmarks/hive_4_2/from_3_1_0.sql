-- From Hive's published schema 3.1.0 to the one that its script "3.1.3000 to 4.0.0" begins with.

-- Hive 4 quotes the names of the transaction tables, in upper case.
DO $$
DECLARE
  one record;
BEGIN
  FOR one IN SELECT table_name AS t, column_name AS c FROM information_schema.columns
             WHERE table_schema = 'public' AND table_name = lower(table_name) LOOP
    EXECUTE format('ALTER TABLE %I RENAME COLUMN %I TO %I', one.t, one.c, upper(one.c));
  END LOOP;
  FOR one IN SELECT table_name AS t FROM information_schema.tables
             WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name = lower(table_name) LOOP
    EXECUTE format('ALTER TABLE %I RENAME TO %I', one.t, upper(one.t));
  END LOOP;
  FOR one IN SELECT indexname AS i FROM pg_indexes
             WHERE schemaname = 'public' AND indexname IN ('tbl_to_txn_id_idx', 'tbl_to_write_id_idx',
                 'next_write_id_idx', 'min_history_level_idx', 'idx_runtime_stats_create_time') LOOP
    EXECUTE format('ALTER INDEX %I RENAME TO %I', one.i, upper(one.i));
  END LOOP;
END $$;

-- Tables and columns that came in between.
DROP TABLE "INDEX_PARAMS", "IDXS";
ALTER TABLE "PARTITION_PARAMS" ALTER "PARAM_VALUE" TYPE text;
ALTER TABLE "CTLGS" ADD "CREATE_TIME" bigint;
ALTER TABLE "DBS" ADD "CREATE_TIME" bigint, ADD "DB_MANAGED_LOCATION_URI" varchar(4000);
ALTER TABLE "TBLS" ADD "WRITE_ID" bigint DEFAULT 0;
ALTER TABLE "PARTITIONS" ADD "WRITE_ID" bigint DEFAULT 0;
ALTER TABLE "TAB_COL_STATS" ADD "ENGINE" varchar(128);
ALTER TABLE "PART_COL_STATS" ADD "ENGINE" varchar(128);
ALTER TABLE "COMPACTION_QUEUE" ADD "CQ_ERROR_MESSAGE" text;
ALTER TABLE "COMPLETED_COMPACTIONS" ADD "CC_ERROR_MESSAGE" text;
CREATE UNIQUE INDEX "NOTIFICATION_LOG_EVENT_ID" ON "NOTIFICATION_LOG" ("EVENT_ID");
CREATE TABLE "TXN_WRITE_NOTIFICATION_LOG" (
  "WNL_ID" bigint NOT NULL, "WNL_TXNID" bigint NOT NULL, "WNL_WRITEID" bigint NOT NULL,
  "WNL_DATABASE" varchar(128) NOT NULL, "WNL_TABLE" varchar(256) NOT NULL, "WNL_PARTITION" varchar(767) NOT NULL,
  "WNL_TABLE_OBJ" text NOT NULL, "WNL_PARTITION_OBJ" text, "WNL_FILES" text, "WNL_EVENT_TIME" integer NOT NULL,
  PRIMARY KEY ("WNL_TXNID", "WNL_DATABASE", "WNL_TABLE", "WNL_PARTITION"));
INSERT INTO "SEQUENCE_TABLE" VALUES ('org.apache.hadoop.hive.metastore.model.MTxnWriteNotificationLog', 1);
CREATE TABLE "SCHEDULED_QUERIES" (
  "SCHEDULED_QUERY_ID" bigint PRIMARY KEY, "CLUSTER_NAMESPACE" varchar(256), "ENABLED" boolean NOT NULL,
  "NEXT_EXECUTION" integer, "QUERY" varchar(4000), "SCHEDULE" varchar(256), "SCHEDULE_NAME" varchar(256),
  "USER" varchar(256), "ACTIVE_EXECUTION_ID" bigint);
CREATE TABLE "SCHEDULED_EXECUTIONS" (
  "SCHEDULED_EXECUTION_ID" bigint PRIMARY KEY, "END_TIME" integer, "ERROR_MESSAGE" varchar(2000),
  "EXECUTOR_QUERY_ID" varchar(256), "LAST_UPDATE_TIME" integer,
  "SCHEDULED_QUERY_ID" bigint REFERENCES "SCHEDULED_QUERIES" ON DELETE CASCADE,
  "START_TIME" integer, "STATE" varchar(256));
