-- The transaction tables of a Hive metastore 4.x, as far as a cut-over reads and writes them.
CREATE TABLE "TXNS" ("TXN_ID" bigint PRIMARY KEY, "TXN_STATE" char(1) NOT NULL, "TXN_STARTED" bigint NOT NULL,
  "TXN_LAST_HEARTBEAT" bigint NOT NULL, "TXN_USER" varchar(128) NOT NULL, "TXN_HOST" varchar(128) NOT NULL,
  "TXN_AGENT_INFO" varchar(128), "TXN_TYPE" integer);
CREATE SEQUENCE "TXNS_TXN_ID_SEQ" MINVALUE 0 OWNED BY "TXNS"."TXN_ID";
ALTER TABLE "TXNS" ALTER "TXN_ID" SET DEFAULT nextval('"TXNS_TXN_ID_SEQ"');
CREATE TABLE "TXN_COMPONENTS" ("TC_TXNID" bigint NOT NULL REFERENCES "TXNS", "TC_DATABASE" varchar(128) NOT NULL,
  "TC_TABLE" varchar(128), "TC_PARTITION" varchar(767), "TC_OPERATION_TYPE" char(1) NOT NULL, "TC_WRITEID" bigint);
CREATE TABLE "COMPLETED_TXN_COMPONENTS" ("CTC_TXNID" bigint NOT NULL, "CTC_DATABASE" varchar(128) NOT NULL,
  "CTC_TABLE" varchar(256), "CTC_PARTITION" varchar(767), "CTC_TIMESTAMP" timestamp DEFAULT now() NOT NULL,
  "CTC_WRITEID" bigint, "CTC_UPDATE_DELETE" char(1) NOT NULL);
CREATE TABLE "TXN_TO_WRITE_ID" ("T2W_TXNID" bigint NOT NULL, "T2W_DATABASE" varchar(128) NOT NULL,
  "T2W_TABLE" varchar(256) NOT NULL, "T2W_WRITEID" bigint NOT NULL);
CREATE TABLE "NEXT_WRITE_ID" ("NWI_DATABASE" varchar(128) NOT NULL, "NWI_TABLE" varchar(256) NOT NULL,
  "NWI_NEXT" bigint NOT NULL);
CREATE TABLE "HIVE_LOCKS" ("HL_LOCK_EXT_ID" bigint, "HL_LOCK_INT_ID" bigint, "HL_TXNID" bigint,
  "HL_DB" varchar(128), "HL_TABLE" varchar(128), "HL_PARTITION" varchar(767), "HL_LOCK_STATE" char(1),
  "HL_LOCK_TYPE" char(1), "HL_LAST_HEARTBEAT" bigint, "HL_USER" varchar(128), "HL_HOST" varchar(128),
  "HL_AGENT_INFO" varchar(128));
CREATE TABLE "WRITE_SET" ("WS_DATABASE" varchar(128), "WS_TABLE" varchar(128), "WS_PARTITION" varchar(767),
  "WS_TXNID" bigint, "WS_COMMIT_ID" bigint, "WS_OPERATION_TYPE" char(1));
CREATE TABLE "COMPACTION_QUEUE" ("CQ_ID" bigint PRIMARY KEY, "CQ_STATE" char(1) NOT NULL);
CREATE TABLE "MIN_HISTORY_WRITE_ID" ("MH_TXNID" bigint, "MH_DATABASE" varchar(128), "MH_TABLE" varchar(256),
  "MH_WRITEID" bigint);
CREATE TABLE "NEXT_LOCK_ID" ("NL_NEXT" bigint NOT NULL);
CREATE TABLE "NEXT_COMPACTION_QUEUE_ID" ("NCQ_NEXT" bigint NOT NULL);
INSERT INTO "NEXT_LOCK_ID" VALUES (31);
INSERT INTO "NEXT_COMPACTION_QUEUE_ID" VALUES (6);
-- 40 committed, 41 open with a lock, 42 aborted; d.t: write id 1 of 40, 2 of 41, 3 of 42.
INSERT INTO "TXNS" VALUES (40, 'c', 0, 0, 'ann', 'h', NULL, 0), (41, 'o', 0, 0, 'bob', 'h', 'x', 0),
  (42, 'a', 0, 0, 'eve', 'h', NULL, NULL);
SELECT setval('"TXNS_TXN_ID_SEQ"', 42);
INSERT INTO "TXN_TO_WRITE_ID" VALUES (40, 'd', 't', 1), (41, 'd', 't', 2), (42, 'd', 't', 3);
INSERT INTO "NEXT_WRITE_ID" VALUES ('d', 't', 4);
INSERT INTO "TXN_COMPONENTS" VALUES (41, 'd', 't', 'Day=1', 'u', 2), (42, 'd', 't', NULL, 'i', 3);
INSERT INTO "COMPLETED_TXN_COMPONENTS" VALUES (40, 'd', 't', 'Day=1', now(), 1, 'Y');
INSERT INTO "WRITE_SET" VALUES ('d', 't', 'Day=1', 40, 41, 'u');
INSERT INTO "HIVE_LOCKS" VALUES (30, 1, 41, 'd', 't', 'Day=1', 'a', 'w', 0, 'bob', 'h', NULL);
