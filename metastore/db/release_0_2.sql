-- What servers of release 0.2 call, or read of what triggers write: rows as the bytes that clients get (ADR 59). This
-- release uses none of it; it goes with the columns "wire" of locks and compactions and "meta" of tables in the next.

CREATE OR REPLACE FUNCTION set_compaction_wire() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.wire := '\x0b0001'::bytea || int4send(octet_length(NEW.db)) || convert_to(NEW.db, 'UTF8') || '\x0b0002'::bytea
        || int4send(octet_length(NEW."table")) || convert_to(NEW."table", 'UTF8')
        || coalesce('\x0b0003'::bytea || int4send(octet_length(nullif(NEW.partition, '')))
            || convert_to(nullif(NEW.partition, ''), 'UTF8'), '')
        || '\x080004'::bytea
        || int4send(CASE NEW.type WHEN 'minor' THEN 1 WHEN 'major' THEN 2 WHEN 'rebalance' THEN 3
                                  WHEN 'abort_txn_cleanup' THEN 4 END)
        || '\x0b0005'::bytea || int4send(octet_length(replace(NEW.state, '_', ' ')))
        || convert_to(replace(NEW.state, '_', ' '), 'UTF8')
        || coalesce('\x0b0006'::bytea || int4send(octet_length(NEW.worker_id)) || convert_to(NEW.worker_id, 'UTF8'), '')
        || '\x0a0007'::bytea || int8send(coalesce(floor(date_part('epoch', NEW.started_at) * 1000 + 0.0005)::bigint, 0))
        || coalesce('\x0b0008'::bytea || int4send(octet_length(NEW.run_as)) || convert_to(NEW.run_as, 'UTF8'), '')
        || '\x0a0009'::bytea || int8send(coalesce(NEW.highest_write_id, 0))
        || coalesce('\x0b000a'::bytea || int4send(octet_length(NEW.meta_info)) || convert_to(NEW.meta_info, 'UTF8'), '')
        || coalesce('\x0a000b'::bytea || int8send(floor(date_part('epoch', NEW.ended_at) * 1000 + 0.0005)::bigint), '')
        || '\x0b000c'::bytea || int4send(octet_length(coalesce(nullif(NEW.hadoop_job_id, ''), 'None')))
        || convert_to(coalesce(nullif(NEW.hadoop_job_id, ''), 'None'), 'UTF8') || '\x0a000d'::bytea || int8send(NEW.id)
        || coalesce('\x0b000e'::bytea || int4send(octet_length(NEW.error_message))
            || convert_to(NEW.error_message, 'UTF8'), '')
        || coalesce('\x0a000f'::bytea
            || int8send(floor(date_part('epoch', NEW.enqueued_at) * 1000 + 0.0005)::bigint), '')
        || coalesce('\x0b0010'::bytea || int4send(octet_length(NEW.worker_version))
            || convert_to(NEW.worker_version, 'UTF8'), '')
        || coalesce('\x0b0011'::bytea || int4send(octet_length(NEW.initiator_id))
            || convert_to(NEW.initiator_id, 'UTF8'), '')
        || coalesce('\x0b0012'::bytea || int4send(octet_length(NEW.initiator_version))
            || convert_to(NEW.initiator_version, 'UTF8'), '')
        || coalesce('\x0a0013'::bytea
            || int8send(floor(date_part('epoch', NEW.cleaner_started_at) * 1000 + 0.0005)::bigint), '')
        || '\x0b0014'::bytea || int4send(octet_length(coalesce(nullif(NEW.pool, ''), 'default')))
        || convert_to(coalesce(nullif(NEW.pool, ''), 'default'), 'UTF8') || '\x0a0015'::bytea
        || int8send(coalesce(NEW.next_txn_id, 0)) || '\x0a0016'::bytea || int8send(coalesce(NEW.txn_id, 0))
        || '\x0a0017'::bytea
        || int8send(coalesce(floor(date_part('epoch', NEW.committed_at) * 1000 + 0.0005)::bigint, 0))
        || '\x0a0018'::bytea || int8send(coalesce(NEW.highest_write_id, 0)) || '\x00'::bytea;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION lock_wire(
    ext_id bigint, int_id integer, txn_id bigint, db text, tab text, part text, lock_type text, owner text, host text,
    agent text) RETURNS bytea
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT '\x0a0001'::bytea || int8send(ext_id) || '\x0b0002'::bytea || int4send(octet_length(db)) || textsend(db)
        || CASE WHEN tab = '' THEN ''::bytea
                ELSE '\x0b0003'::bytea || int4send(octet_length(tab)) || textsend(tab) END
        || CASE WHEN part = '' THEN ''::bytea
                ELSE '\x0b0004'::bytea || int4send(octet_length(part)) || textsend(part) END
        || CASE lock_type WHEN 'shared_read' THEN '\x080006000000010a0007'::bytea
                          WHEN 'shared_write' THEN '\x080006000000020a0007'::bytea
                          WHEN 'exclusive' THEN '\x080006000000030a0007'::bytea
                          WHEN 'excl_write' THEN '\x080006000000040a0007'::bytea END
        || int8send(txn_id) || '\x0b000a'::bytea || int4send(octet_length(owner)) || textsend(owner)
        || '\x0b000b'::bytea || int4send(octet_length(host)) || textsend(host)
        || '\x0b000d'::bytea || int4send(octet_length(agent)) || textsend(agent)
        || '\x0a0010'::bytea || int8send(int_id)
$$;

CREATE OR REPLACE FUNCTION forget_lock_wire() RETURNS trigger
LANGUAGE plpgsql AS $$ BEGIN NEW.wire := NULL; RETURN NEW; END $$;

CREATE OR REPLACE FUNCTION table_meta(catalog text, db text, name text, type text, comment text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    '\x0b0001'::bytea || int4send(octet_length(db)) || convert_to(db, 'UTF8')
    || '\x0b0002'::bytea || int4send(octet_length(name)) || convert_to(name, 'UTF8')
    || '\x0b0003'::bytea || int4send(octet_length(type)) || convert_to(type, 'UTF8')
    || coalesce('\x0b0004'::bytea || int4send(octet_length(comment)) || convert_to(comment, 'UTF8'), ''::bytea)
    || '\x0b0005'::bytea || int4send(octet_length(catalog)) || convert_to(catalog, 'UTF8')
    || '\x00'::bytea;

CREATE OR REPLACE TRIGGER locks_wire BEFORE UPDATE OF catalog, db, "table", partition ON locks
    FOR EACH ROW EXECUTE FUNCTION forget_lock_wire();

CREATE OR REPLACE TRIGGER compaction_queue_wire BEFORE INSERT OR UPDATE OF
    id, db, "table", partition, type, state, worker_id, worker_version, initiator_id, initiator_version, run_as, pool,
    enqueued_at, started_at, ended_at, cleaner_started_at, committed_at, highest_write_id, txn_id, next_txn_id,
    hadoop_job_id, error_message, meta_info
    ON compaction_queue FOR EACH ROW EXECUTE FUNCTION set_compaction_wire();
CREATE OR REPLACE TRIGGER completed_compactions_wire BEFORE INSERT OR UPDATE OF
    id, db, "table", partition, type, state, worker_id, worker_version, initiator_id, initiator_version, run_as, pool,
    enqueued_at, started_at, ended_at, cleaner_started_at, committed_at, highest_write_id, txn_id, next_txn_id,
    hadoop_job_id, error_message, meta_info
    ON completed_compactions FOR EACH ROW EXECUTE FUNCTION set_compaction_wire();
