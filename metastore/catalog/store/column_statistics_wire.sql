-- A column's statistics, as Thrift's binary protocol has them (ADR 59).

CREATE OR REPLACE FUNCTION column_statistics_wire("column" text, type text, data jsonb) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    f jsonb;
    wire bytea := '\x0b0001'::bytea || int4send(octet_length("column")) || convert_to("column", 'UTF8')
        || coalesce('\x0b0002'::bytea || int4send(octet_length(type)) || convert_to(type, 'UTF8'), ''::bytea)
        || '\x0c0003'::bytea;
BEGIN
    CASE
WHEN data ? 'booleanStats' THEN f := data -> 'booleanStats'; wire := wire || '\x0c0001'::bytea
    || coalesce('\x0a0001'::bytea || int8send((f ->> 'numTrues')::bigint), ''::bytea)
    || coalesce('\x0a0002'::bytea || int8send((f ->> 'numFalses')::bigint), ''::bytea)
    || coalesce('\x0a0003'::bytea || int8send((f ->> 'numNulls')::bigint), ''::bytea)
    || coalesce('\x0b0004'::bytea || int4send(octet_length(decode(f ->> 'bitVectors', 'base64')))
        || decode(f ->> 'bitVectors', 'base64'), ''::bytea)
    || '\x00'::bytea;
WHEN data ? 'longStats' THEN f := data -> 'longStats'; wire := wire || '\x0c0002'::bytea
    || coalesce('\x0a0001'::bytea || int8send((f ->> 'lowValue')::bigint), ''::bytea)
    || coalesce('\x0a0002'::bytea || int8send((f ->> 'highValue')::bigint), ''::bytea)
    || coalesce('\x0a0003'::bytea || int8send((f ->> 'numNulls')::bigint), ''::bytea)
    || coalesce('\x0a0004'::bytea || int8send((f ->> 'numDVs')::bigint), ''::bytea)
    || coalesce('\x0b0005'::bytea || int4send(octet_length(decode(f ->> 'bitVectors', 'base64')))
        || decode(f ->> 'bitVectors', 'base64'), ''::bytea)
    || coalesce('\x0b0006'::bytea || int4send(octet_length(decode(f ->> 'histogram', 'base64')))
        || decode(f ->> 'histogram', 'base64'), ''::bytea)
    || '\x00'::bytea;
WHEN data ? 'doubleStats' THEN f := data -> 'doubleStats'; wire := wire || '\x0c0003'::bytea
    || coalesce('\x040001'::bytea || float8send((f ->> 'lowValue')::float8), ''::bytea)
    || coalesce('\x040002'::bytea || float8send((f ->> 'highValue')::float8), ''::bytea)
    || coalesce('\x0a0003'::bytea || int8send((f ->> 'numNulls')::bigint), ''::bytea)
    || coalesce('\x0a0004'::bytea || int8send((f ->> 'numDVs')::bigint), ''::bytea)
    || coalesce('\x0b0005'::bytea || int4send(octet_length(decode(f ->> 'bitVectors', 'base64')))
        || decode(f ->> 'bitVectors', 'base64'), ''::bytea)
    || coalesce('\x0b0006'::bytea || int4send(octet_length(decode(f ->> 'histogram', 'base64')))
        || decode(f ->> 'histogram', 'base64'), ''::bytea)
    || '\x00'::bytea;
WHEN data ? 'stringStats' THEN f := data -> 'stringStats'; wire := wire || '\x0c0004'::bytea
    || coalesce('\x0a0001'::bytea || int8send((f ->> 'maxColLen')::bigint), ''::bytea)
    || coalesce('\x040002'::bytea || float8send((f ->> 'avgColLen')::float8), ''::bytea)
    || coalesce('\x0a0003'::bytea || int8send((f ->> 'numNulls')::bigint), ''::bytea)
    || coalesce('\x0a0004'::bytea || int8send((f ->> 'numDVs')::bigint), ''::bytea)
    || coalesce('\x0b0005'::bytea || int4send(octet_length(decode(f ->> 'bitVectors', 'base64')))
        || decode(f ->> 'bitVectors', 'base64'), ''::bytea)
    || coalesce('\x0b0006'::bytea || int4send(octet_length(decode(f ->> 'histogram', 'base64')))
        || decode(f ->> 'histogram', 'base64'), ''::bytea)
    || '\x00'::bytea;
WHEN data ? 'binaryStats' THEN f := data -> 'binaryStats'; wire := wire || '\x0c0005'::bytea
    || coalesce('\x0a0001'::bytea || int8send((f ->> 'maxColLen')::bigint), ''::bytea)
    || coalesce('\x040002'::bytea || float8send((f ->> 'avgColLen')::float8), ''::bytea)
    || coalesce('\x0a0003'::bytea || int8send((f ->> 'numNulls')::bigint), ''::bytea)
    || coalesce('\x0b0004'::bytea || int4send(octet_length(decode(f ->> 'bitVectors', 'base64')))
        || decode(f ->> 'bitVectors', 'base64'), ''::bytea)
    || '\x00'::bytea;
WHEN data ? 'decimalStats' THEN f := data -> 'decimalStats'; wire := wire || '\x0c0006'::bytea
    || coalesce('\x0c0001'::bytea || '\x0b0001'::bytea
        || int4send(octet_length(decode(f -> 'lowValue' ->> 'unscaled', 'base64')))
        || decode(f -> 'lowValue' ->> 'unscaled', 'base64') || '\x060003'::bytea
        || int2send((f -> 'lowValue' ->> 'scale')::smallint) || '\x00'::bytea, ''::bytea)
    || coalesce('\x0c0002'::bytea || '\x0b0001'::bytea
        || int4send(octet_length(decode(f -> 'highValue' ->> 'unscaled', 'base64')))
        || decode(f -> 'highValue' ->> 'unscaled', 'base64') || '\x060003'::bytea
        || int2send((f -> 'highValue' ->> 'scale')::smallint) || '\x00'::bytea, ''::bytea)
    || coalesce('\x0a0003'::bytea || int8send((f ->> 'numNulls')::bigint), ''::bytea)
    || coalesce('\x0a0004'::bytea || int8send((f ->> 'numDVs')::bigint), ''::bytea)
    || coalesce('\x0b0005'::bytea || int4send(octet_length(decode(f ->> 'bitVectors', 'base64')))
        || decode(f ->> 'bitVectors', 'base64'), ''::bytea)
    || coalesce('\x0b0006'::bytea || int4send(octet_length(decode(f ->> 'histogram', 'base64')))
        || decode(f ->> 'histogram', 'base64'), ''::bytea)
    || '\x00'::bytea;
WHEN data ? 'dateStats' THEN f := data -> 'dateStats'; wire := wire || '\x0c0007'::bytea
    || coalesce('\x0c0001'::bytea || '\x0a0001'::bytea || int8send((f -> 'lowValue' ->> 'daysSinceEpoch')::bigint)
        || '\x00'::bytea, ''::bytea)
    || coalesce('\x0c0002'::bytea || '\x0a0001'::bytea || int8send((f -> 'highValue' ->> 'daysSinceEpoch')::bigint)
        || '\x00'::bytea, ''::bytea)
    || coalesce('\x0a0003'::bytea || int8send((f ->> 'numNulls')::bigint), ''::bytea)
    || coalesce('\x0a0004'::bytea || int8send((f ->> 'numDVs')::bigint), ''::bytea)
    || coalesce('\x0b0005'::bytea || int4send(octet_length(decode(f ->> 'bitVectors', 'base64')))
        || decode(f ->> 'bitVectors', 'base64'), ''::bytea)
    || coalesce('\x0b0006'::bytea || int4send(octet_length(decode(f ->> 'histogram', 'base64')))
        || decode(f ->> 'histogram', 'base64'), ''::bytea)
    || '\x00'::bytea;
WHEN data ? 'timestampStats' THEN f := data -> 'timestampStats'; wire := wire || '\x0c0008'::bytea
    || coalesce('\x0c0001'::bytea || '\x0a0001'::bytea || int8send((f -> 'lowValue' ->> 'secondsSinceEpoch')::bigint)
        || '\x00'::bytea, ''::bytea)
    || coalesce('\x0c0002'::bytea || '\x0a0001'::bytea || int8send((f -> 'highValue' ->> 'secondsSinceEpoch')::bigint)
        || '\x00'::bytea, ''::bytea)
    || coalesce('\x0a0003'::bytea || int8send((f ->> 'numNulls')::bigint), ''::bytea)
    || coalesce('\x0a0004'::bytea || int8send((f ->> 'numDVs')::bigint), ''::bytea)
    || coalesce('\x0b0005'::bytea || int4send(octet_length(decode(f ->> 'bitVectors', 'base64')))
        || decode(f ->> 'bitVectors', 'base64'), ''::bytea)
    || coalesce('\x0b0006'::bytea || int4send(octet_length(decode(f ->> 'histogram', 'base64')))
        || decode(f ->> 'histogram', 'base64'), ''::bytea)
    || '\x00'::bytea;
    ELSE NULL;
    END CASE;
    RETURN wire || '\x0000'::bytea;
END $$;

CREATE OR REPLACE FUNCTION set_column_statistics_wire() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN NEW.wire := column_statistics_wire(NEW."column", NEW.type, NEW.data); RETURN NEW; END $$;
