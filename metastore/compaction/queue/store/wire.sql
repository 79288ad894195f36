-- A compaction as SHOW COMPACTIONS sends it, in Thrift's binary protocol (ADR 93).

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
