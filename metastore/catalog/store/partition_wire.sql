-- The part of a partition that its own row decides, as Thrift's binary protocol has it (ADR 59).

CREATE OR REPLACE FUNCTION thrift_text(value text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT int4send(octet_length(value)) || convert_to(value, 'UTF8')
$$;

CREATE OR REPLACE FUNCTION partition_wire(
    "values" text[], create_time integer, last_access_time integer, parameters jsonb, write_id bigint,
    has_descriptor boolean, location text) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN '\x0f00010b'::bytea || int4send(cardinality($1))
        || (SELECT coalesce(string_agg(int4send(octet_length(v)) || convert_to(v, 'UTF8'), '' ORDER BY n), '')
              FROM unnest($1) WITH ORDINALITY u (v, n))
        || '\x080004'::bytea || int4send($2)
        || '\x080005'::bytea || int4send($3)
        || '\x0d00070b0b'::bytea
        || (SELECT int4send(count(*)::int)
                || coalesce(string_agg(int4send(octet_length(key)) || convert_to(key, 'UTF8')
                                       || int4send(octet_length(value)) || convert_to(value, 'UTF8'), ''), '')
              FROM jsonb_each_text($4))
        || '\x0a000a'::bytea || int8send($5)
        || CASE WHEN $6 THEN '\x0c0006'::bytea
                             || coalesce('\x0b0002'::bytea || int4send(octet_length($7)) || convert_to($7, 'UTF8'), '')
           ELSE '' END;
END $$;

CREATE OR REPLACE FUNCTION set_partition_wire() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.wire := partition_wire(NEW."values", NEW.create_time, NEW.last_access_time, NEW.parameters,
                               NEW.write_id, NEW.digest IS NOT NULL, NEW.location);
    RETURN NEW;
END $$;
