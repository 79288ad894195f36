-- A table as get_table_meta sends it, in Thrift's binary protocol.

CREATE OR REPLACE FUNCTION set_table_meta() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.meta := table_meta(NEW.catalog, NEW.db, NEW.name, NEW.type, NEW.parameters ->> 'comment');
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION table_meta(catalog text, db text, name text, type text, comment text) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    '\x0b0001'::bytea || int4send(octet_length(db)) || convert_to(db, 'UTF8')
    || '\x0b0002'::bytea || int4send(octet_length(name)) || convert_to(name, 'UTF8')
    || '\x0b0003'::bytea || int4send(octet_length(type)) || convert_to(type, 'UTF8')
    || coalesce('\x0b0004'::bytea || int4send(octet_length(comment)) || convert_to(comment, 'UTF8'), ''::bytea)
    || '\x0b0005'::bytea || int4send(octet_length(catalog)) || convert_to(catalog, 'UTF8')
    || '\x00'::bytea;
