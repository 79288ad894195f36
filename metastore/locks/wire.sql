-- A lock as SHOW LOCKS sends it, in Thrift's binary protocol, but for what changes while it is there (ADR 93).

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
