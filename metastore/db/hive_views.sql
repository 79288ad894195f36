-- Views with the names and columns of Hive's own tables, for tools that read a metastore's database by SQL. The columns
-- are those of Hive 4.2's script for PostgreSQL, in its order. Rules: nobody can write to a view, not even its owner, so
-- none has a single table in FROM; none names a column that only release 0.2 reads; a number stays the same while its
-- object keeps its name.

-- Return the number of an object that has none of its own here. It is above 2^62, so it is no number of a table.
CREATE OR REPLACE FUNCTION hive_id(name text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN (hashtextextended(name, 0) & 4611686018427387903) | 4611686018427387904;

-- Return milliseconds since 1970, as Hive stores instants.
CREATE OR REPLACE FUNCTION hive_millis(instant timestamp with time zone) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN floor(extract(epoch FROM instant) * 1000)::bigint;

CREATE OR REPLACE FUNCTION hive_owner_type(number smallint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN (ARRAY['USER', 'ROLE', 'GROUP'])[number];

-- Return a map in the form in which Hive stores the properties of a compaction; NULL if it is empty.
CREATE OR REPLACE FUNCTION hive_properties(properties jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN (
    SELECT count(*) || ':' || string_agg(length(key) || ':' || key || length(value) || ':' || value, '' ORDER BY key)
    FROM jsonb_each_text(properties));

-- Make the views in the schema "hive", or make them anew, and return whether it was done. Nothing is done, and nothing
-- fails, if this role may not make the schema, or if the schema is another's: of a Hive metastore in the same database, or
-- of a second metastore, in which case the first has the views. The comment of the schema says whose it is.
CREATE OR REPLACE FUNCTION make_hive_views() RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    mark text := 'Views of the transaction metastore in the schema ' || current_schema();
BEGIN
    IF to_regnamespace('hive') IS NULL AND has_database_privilege(current_database(), 'CREATE') THEN
        CREATE SCHEMA hive;
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_namespace AS n WHERE n.nspname = 'hive' AND pg_has_role(n.nspowner, 'USAGE')
        AND (obj_description(n.oid, 'pg_namespace') = mark
             OR NOT EXISTS (SELECT FROM pg_class AS c WHERE c.relnamespace = n.oid)))
    THEN
        RETURN false;
    END IF;
    EXECUTE format('COMMENT ON SCHEMA hive IS %L', mark);

    CREATE OR REPLACE VIEW hive."CTLGS" AS
    SELECT CASE name WHEN 'hive' THEN 1 ELSE hive_id(name) END AS "CTLG_ID", name AS "NAME", description AS "DESC",
           location AS "LOCATION_URI", create_time::bigint AS "CREATE_TIME"
    FROM catalogs CROSS JOIN (SELECT) AS read_only;

    CREATE OR REPLACE VIEW hive."DBS" AS
    SELECT id AS "DB_ID", description AS "DESC", location AS "DB_LOCATION_URI", name AS "NAME", owner AS "OWNER_NAME",
           hive_owner_type(owner_type) AS "OWNER_TYPE", catalog AS "CTLG_NAME", create_time::bigint AS "CREATE_TIME",
           managed_location AS "DB_MANAGED_LOCATION_URI", 'NATIVE'::text AS "TYPE", NULL::text AS "DATACONNECTOR_NAME",
           NULL::text AS "REMOTE_DBNAME"
    FROM databases CROSS JOIN (SELECT) AS read_only;

    CREATE OR REPLACE VIEW hive."DATABASE_PARAMS" AS
    SELECT d.id AS "DB_ID", p.key AS "PARAM_KEY", p.value AS "PARAM_VALUE"
    FROM databases AS d CROSS JOIN jsonb_each_text(d.parameters) AS p;

    CREATE OR REPLACE VIEW hive."TBLS" AS
    SELECT t.id AS "TBL_ID", t.create_time::bigint AS "CREATE_TIME", d.id AS "DB_ID",
           t.last_access_time::bigint AS "LAST_ACCESS_TIME", t.owner AS "OWNER",
           hive_owner_type(t.owner_type) AS "OWNER_TYPE", t.retention::bigint AS "RETENTION", t.id AS "SD_ID",
           t.name AS "TBL_NAME", t.type AS "TBL_TYPE", t.view_expanded_text AS "VIEW_EXPANDED_TEXT",
           t.view_original_text AS "VIEW_ORIGINAL_TEXT", t.rewrite_enabled AS "IS_REWRITE_ENABLED",
           greatest(t.write_id, 0) AS "WRITE_ID"
    FROM tables AS t JOIN databases AS d ON d.catalog = t.catalog AND d.name = t.db;

    CREATE OR REPLACE VIEW hive."TABLE_PARAMS" AS
    SELECT t.id AS "TBL_ID", p.key AS "PARAM_KEY", p.value AS "PARAM_VALUE"
    FROM tables AS t CROSS JOIN jsonb_each_text(t.parameters) AS p;

    CREATE OR REPLACE VIEW hive."PARTITION_KEYS" AS
    SELECT t.id AS "TBL_ID", k.field ->> 'comment' AS "PKEY_COMMENT", k.field ->> 'name' AS "PKEY_NAME",
           k.field ->> 'type' AS "PKEY_TYPE", k.place - 1 AS "INTEGER_IDX"
    FROM tables AS t CROSS JOIN jsonb_array_elements(t.partition_keys) WITH ORDINALITY AS k (field, place);

    CREATE OR REPLACE VIEW hive."PARTITIONS" AS
    SELECT p.id AS "PART_ID", create_time::bigint AS "CREATE_TIME", last_access_time::bigint AS "LAST_ACCESS_TIME",
           name AS "PART_NAME", CASE WHEN digest IS NOT NULL THEN p.id END AS "SD_ID", table_id AS "TBL_ID",
           greatest(write_id, 0) AS "WRITE_ID"
    FROM partitions CROSS JOIN hive_id(table_id || '/' || name) AS p (id);

    CREATE OR REPLACE VIEW hive."PARTITION_PARAMS" AS
    SELECT hive_id(t.table_id || '/' || t.name) AS "PART_ID", p.key AS "PARAM_KEY", p.value AS "PARAM_VALUE"
    FROM partitions AS t CROSS JOIN jsonb_each_text(t.parameters) AS p;

    CREATE OR REPLACE VIEW hive."PARTITION_KEY_VALS" AS
    SELECT hive_id(p.table_id || '/' || p.name) AS "PART_ID", v.value AS "PART_KEY_VAL", v.place - 1 AS "INTEGER_IDX"
    FROM partitions AS p CROSS JOIN unnest(p.values) WITH ORDINALITY AS v (value, place);

    -- A table has a descriptor of its own. Partitions of a table whose descriptors are equal share columns and SerDe.
    CREATE OR REPLACE VIEW hive."SDS" AS
    WITH ours AS (
        SELECT id, id AS shared_id, location, sd FROM tables
        UNION ALL
        SELECT hive_id(p.table_id || '/' || p.name), hive_id(p.table_id || d.digest), p.location, d.sd
        FROM partitions AS p JOIN partition_descriptors AS d ON d.table_id = p.table_id AND d.digest = p.digest)
    SELECT id AS "SD_ID", sd ->> 'inputFormat' AS "INPUT_FORMAT",
           coalesce((sd ->> 'compressed')::boolean, false) AS "IS_COMPRESSED", location AS "LOCATION",
           coalesce((sd ->> 'numBuckets')::bigint, 0) AS "NUM_BUCKETS", sd ->> 'outputFormat' AS "OUTPUT_FORMAT",
           shared_id AS "SERDE_ID", shared_id AS "CD_ID",
           coalesce((sd ->> 'storedAsSubDirectories')::boolean, false) AS "IS_STOREDASSUBDIRECTORIES"
    FROM ours;

    CREATE OR REPLACE VIEW hive."SD_PARAMS" AS
    WITH ours AS (
        SELECT id, sd FROM tables
        UNION ALL
        SELECT hive_id(p.table_id || '/' || p.name), d.sd
        FROM partitions AS p JOIN partition_descriptors AS d ON d.table_id = p.table_id AND d.digest = p.digest)
    SELECT o.id AS "SD_ID", p.key AS "PARAM_KEY", p.value AS "PARAM_VALUE"
    FROM ours AS o CROSS JOIN jsonb_each_text(o.sd -> 'parameters') AS p;

    CREATE OR REPLACE VIEW hive."CDS" AS
    SELECT id AS "CD_ID" FROM tables UNION ALL SELECT hive_id(table_id || digest) FROM partition_descriptors;

    CREATE OR REPLACE VIEW hive."COLUMNS_V2" AS
    WITH ours AS (
        SELECT id, sd FROM tables UNION ALL SELECT hive_id(table_id || digest), sd FROM partition_descriptors)
    SELECT o.id AS "CD_ID", c.field ->> 'comment' AS "COMMENT", c.field ->> 'name' AS "COLUMN_NAME",
           c.field ->> 'type' AS "TYPE_NAME", (c.place - 1)::integer AS "INTEGER_IDX"
    FROM ours AS o CROSS JOIN jsonb_array_elements(o.sd -> 'cols') WITH ORDINALITY AS c (field, place);

    CREATE OR REPLACE VIEW hive."SERDES" AS
    WITH ours AS (
        SELECT id, sd -> 'serdeInfo' AS serde FROM tables
        UNION ALL
        SELECT hive_id(table_id || digest), sd -> 'serdeInfo' FROM partition_descriptors)
    SELECT id AS "SERDE_ID", serde ->> 'name' AS "NAME", serde ->> 'serializationLib' AS "SLIB",
           serde ->> 'description' AS "DESCRIPTION", serde ->> 'serializerClass' AS "SERIALIZER_CLASS",
           serde ->> 'deserializerClass' AS "DESERIALIZER_CLASS",
           coalesce((serde ->> 'serdeType')::integer, 0) AS "SERDE_TYPE"
    FROM ours;

    CREATE OR REPLACE VIEW hive."SERDE_PARAMS" AS
    WITH ours AS (
        SELECT id, sd FROM tables UNION ALL SELECT hive_id(table_id || digest), sd FROM partition_descriptors)
    SELECT o.id AS "SERDE_ID", p.key AS "PARAM_KEY", p.value AS "PARAM_VALUE"
    FROM ours AS o CROSS JOIN jsonb_each_text(o.sd #> '{serdeInfo,parameters}') AS p;

    CREATE OR REPLACE VIEW hive."FUNCS" AS
    SELECT hive_id(d.id || '/' || f.name) AS "FUNC_ID", f.class_name AS "CLASS_NAME", f.create_time AS "CREATE_TIME",
           d.id AS "DB_ID", f.name AS "FUNC_NAME", f.type::integer AS "FUNC_TYPE", f.owner AS "OWNER_NAME",
           hive_owner_type(f.owner_type) AS "OWNER_TYPE"
    FROM functions AS f JOIN databases AS d ON d.catalog = f.catalog AND d.name = f.db;

    CREATE OR REPLACE VIEW hive."TXNS" AS
    SELECT id AS "TXN_ID", "left"(state, 1) AS "TXN_STATE", hive_millis(started_at) AS "TXN_STARTED",
           hive_millis(last_heartbeat_at) AS "TXN_LAST_HEARTBEAT", "user" AS "TXN_USER", host AS "TXN_HOST",
           agent_info AS "TXN_AGENT_INFO", NULL::text AS "TXN_META_INFO", heartbeat_count AS "TXN_HEARTBEAT_COUNT",
           type::integer AS "TXN_TYPE"
    FROM txns CROSS JOIN (SELECT) AS read_only;

    CREATE OR REPLACE VIEW hive."TXN_COMPONENTS" AS
    SELECT txn_id AS "TC_TXNID", db AS "TC_DATABASE", nullif("table", '') AS "TC_TABLE",
           nullif(partition, '') AS "TC_PARTITION", operation AS "TC_OPERATION_TYPE", write_id AS "TC_WRITEID"
    FROM txn_components CROSS JOIN (SELECT) AS read_only;

    CREATE OR REPLACE VIEW hive."HIVE_LOCKS" AS
    SELECT ext_id AS "HL_LOCK_EXT_ID", int_id::bigint AS "HL_LOCK_INT_ID", txn_id AS "HL_TXNID", db AS "HL_DB",
           nullif("table", '') AS "HL_TABLE", nullif(partition, '') AS "HL_PARTITION",
           "left"(state, 1) AS "HL_LOCK_STATE",
           CASE type WHEN 'shared_read' THEN 'r' WHEN 'shared_write' THEN 'w' WHEN 'excl_write' THEN 'x'
                     WHEN 'exclusive' THEN 'e' END AS "HL_LOCK_TYPE",
           coalesce(hive_millis(last_heartbeat_at), 0) AS "HL_LAST_HEARTBEAT",
           hive_millis(acquired_at) AS "HL_ACQUIRED_AT", "user" AS "HL_USER", host AS "HL_HOST",
           heartbeat_count AS "HL_HEARTBEAT_COUNT", agent_info AS "HL_AGENT_INFO",
           blocked_by_ext_id AS "HL_BLOCKEDBY_EXT_ID", blocked_by_int_id::bigint AS "HL_BLOCKEDBY_INT_ID"
    FROM locks CROSS JOIN (SELECT) AS read_only;

    CREATE OR REPLACE VIEW hive."COMPACTION_QUEUE" AS
    SELECT id AS "CQ_ID", db AS "CQ_DATABASE", "table" AS "CQ_TABLE", nullif(partition, '') AS "CQ_PARTITION",
           "left"(state, 1) AS "CQ_STATE",
           CASE type WHEN 'major' THEN 'a' WHEN 'minor' THEN 'i' WHEN 'rebalance' THEN 'r'
                     WHEN 'abort_txn_cleanup' THEN 'c' END AS "CQ_TYPE",
           hive_properties(properties) AS "CQ_TBLPROPERTIES", worker_id AS "CQ_WORKER_ID",
           hive_millis(enqueued_at) AS "CQ_ENQUEUE_TIME", hive_millis(started_at) AS "CQ_START", run_as AS "CQ_RUN_AS",
           highest_write_id AS "CQ_HIGHEST_WRITE_ID", convert_to(meta_info, 'UTF8') AS "CQ_META_INFO",
           hadoop_job_id AS "CQ_HADOOP_JOB_ID", error_message AS "CQ_ERROR_MESSAGE", next_txn_id AS "CQ_NEXT_TXN_ID",
           txn_id AS "CQ_TXN_ID", hive_millis(committed_at) AS "CQ_COMMIT_TIME", initiator_id AS "CQ_INITIATOR_ID",
           initiator_version AS "CQ_INITIATOR_VERSION", worker_version AS "CQ_WORKER_VERSION",
           hive_millis(cleaner_started_at) AS "CQ_CLEANER_START",
           coalesce(greatest(hive_millis(not_before) - hive_millis(committed_at), 0), 0) AS "CQ_RETRY_RETENTION",
           pool AS "CQ_POOL_NAME", number_of_buckets AS "CQ_NUMBER_OF_BUCKETS", order_by AS "CQ_ORDER_BY"
    FROM compaction_queue CROSS JOIN (SELECT) AS read_only;

    CREATE OR REPLACE VIEW hive."COMPLETED_COMPACTIONS" AS
    SELECT id AS "CC_ID", db AS "CC_DATABASE", "table" AS "CC_TABLE", nullif(partition, '') AS "CC_PARTITION",
           CASE state WHEN 'failed' THEN 'f' WHEN 'succeeded' THEN 's' WHEN 'did_not_initiate' THEN 'a'
                      WHEN 'refused' THEN 'c' WHEN 'aborted' THEN 'x' END AS "CC_STATE",
           CASE type WHEN 'major' THEN 'a' WHEN 'minor' THEN 'i' WHEN 'rebalance' THEN 'r'
                     WHEN 'abort_txn_cleanup' THEN 'c' END AS "CC_TYPE",
           hive_properties(properties) AS "CC_TBLPROPERTIES", worker_id AS "CC_WORKER_ID",
           hive_millis(enqueued_at) AS "CC_ENQUEUE_TIME", hive_millis(started_at) AS "CC_START",
           hive_millis(ended_at) AS "CC_END", run_as AS "CC_RUN_AS", highest_write_id AS "CC_HIGHEST_WRITE_ID",
           convert_to(meta_info, 'UTF8') AS "CC_META_INFO", hadoop_job_id AS "CC_HADOOP_JOB_ID",
           error_message AS "CC_ERROR_MESSAGE", next_txn_id AS "CC_NEXT_TXN_ID", txn_id AS "CC_TXN_ID",
           hive_millis(committed_at) AS "CC_COMMIT_TIME", initiator_id AS "CC_INITIATOR_ID",
           initiator_version AS "CC_INITIATOR_VERSION", worker_version AS "CC_WORKER_VERSION", pool AS "CC_POOL_NAME",
           number_of_buckets AS "CC_NUMBER_OF_BUCKETS", order_by AS "CC_ORDER_BY"
    FROM completed_compactions CROSS JOIN (SELECT) AS read_only;

    CREATE OR REPLACE VIEW hive."VERSION" AS
    SELECT 1::bigint AS "VER_ID", '4.2.0'::text AS "SCHEMA_VERSION",
           'Views of the transaction metastore'::text AS "VERSION_COMMENT";
    RETURN true;
END $$;
