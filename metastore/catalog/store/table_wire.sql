-- A table's columns and storage, as Thrift's binary protocol has them (ADR 59).

CREATE OR REPLACE FUNCTION table_wire(sd jsonb, partition_keys jsonb) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    serde jsonb := sd -> 'serdeInfo';
    skewed jsonb := sd -> 'skewedInfo';
BEGIN
    RETURN '\x0f0008'::bytea || '\x0c'::bytea || int4send(jsonb_array_length(partition_keys))
        || (SELECT coalesce(string_agg(coalesce('\x0b0001'::bytea || int4send(octet_length((v ->> 'name')))
                || convert_to((v ->> 'name'), 'UTF8'), ''::bytea)
            || coalesce('\x0b0002'::bytea || int4send(octet_length((v ->> 'type')))
                || convert_to((v ->> 'type'), 'UTF8'), ''::bytea)
            || coalesce('\x0b0003'::bytea || int4send(octet_length((v ->> 'comment')))
                || convert_to((v ->> 'comment'), 'UTF8'), ''::bytea)
            || '\x00'::bytea, '' ORDER BY n), '') FROM jsonb_array_elements(partition_keys) WITH ORDINALITY AS u (v, n))
        || '\x0c0007'::bytea
        || coalesce('\x0f0001'::bytea || '\x0c'::bytea || int4send(jsonb_array_length(sd -> 'cols'))
            || (SELECT coalesce(string_agg(coalesce('\x0b0001'::bytea || int4send(octet_length((v ->> 'name')))
                    || convert_to((v ->> 'name'), 'UTF8'), ''::bytea)
                || coalesce('\x0b0002'::bytea || int4send(octet_length((v ->> 'type')))
                    || convert_to((v ->> 'type'), 'UTF8'), ''::bytea)
                || coalesce('\x0b0003'::bytea || int4send(octet_length((v ->> 'comment')))
                    || convert_to((v ->> 'comment'), 'UTF8'), ''::bytea)
                || '\x00'::bytea, '' ORDER BY n), '')
                    FROM jsonb_array_elements(sd -> 'cols') WITH ORDINALITY AS u (v, n)), ''::bytea)
        || coalesce('\x0b0003'::bytea || int4send(octet_length((sd ->> 'inputFormat')))
            || convert_to((sd ->> 'inputFormat'), 'UTF8'), ''::bytea)
        || coalesce('\x0b0004'::bytea || int4send(octet_length((sd ->> 'outputFormat')))
            || convert_to((sd ->> 'outputFormat'), 'UTF8'), ''::bytea)
        || coalesce('\x020005'::bytea
            || CASE sd ->> 'compressed' WHEN 'true' THEN '\x01'::bytea WHEN 'false' THEN '\x00'::bytea END, ''::bytea)
        || coalesce('\x080006'::bytea || int4send((sd ->> 'numBuckets')::int), ''::bytea)
        || CASE WHEN serde IS NULL THEN ''::bytea ELSE '\x0c0007'::bytea
        || coalesce('\x0b0001'::bytea || int4send(octet_length((serde ->> 'name')))
            || convert_to((serde ->> 'name'), 'UTF8'), ''::bytea)
        || coalesce('\x0b0002'::bytea || int4send(octet_length((serde ->> 'serializationLib')))
            || convert_to((serde ->> 'serializationLib'), 'UTF8'), ''::bytea)
        || coalesce('\x0d0003'::bytea || '\x0b0b'::bytea
            || (SELECT int4send(count(*)::int)
                || coalesce(string_agg(int4send(octet_length(key)) || convert_to(key, 'UTF8')
                    || int4send(octet_length(value))
                    || convert_to(value, 'UTF8'), ''), '')
                        FROM jsonb_each_text(serde -> 'parameters') HAVING serde -> 'parameters' IS NOT NULL),
                            ''::bytea)
        || coalesce('\x0b0004'::bytea || int4send(octet_length((serde ->> 'description')))
            || convert_to((serde ->> 'description'), 'UTF8'), ''::bytea)
        || coalesce('\x0b0005'::bytea || int4send(octet_length((serde ->> 'serializerClass')))
            || convert_to((serde ->> 'serializerClass'), 'UTF8'), ''::bytea)
        || coalesce('\x0b0006'::bytea || int4send(octet_length((serde ->> 'deserializerClass')))
            || convert_to((serde ->> 'deserializerClass'), 'UTF8'), ''::bytea)
        || coalesce('\x080007'::bytea || int4send((serde ->> 'serdeType')::int), ''::bytea) || '\x00'::bytea END
        || coalesce('\x0f0008'::bytea || '\x0b'::bytea || int4send(jsonb_array_length(sd -> 'bucketCols'))
            || (SELECT coalesce(string_agg(int4send(octet_length(v))
                || convert_to(v, 'UTF8'), '' ORDER BY n), '')
                    FROM jsonb_array_elements_text(sd -> 'bucketCols') WITH ORDINALITY AS u (v, n)), ''::bytea)
        || coalesce('\x0f0009'::bytea || '\x0c'::bytea || int4send(jsonb_array_length(sd -> 'sortCols'))
            || (SELECT coalesce(string_agg(coalesce('\x0b0001'::bytea || int4send(octet_length((v ->> 'col')))
                    || convert_to((v ->> 'col'), 'UTF8'), ''::bytea)
                || coalesce('\x080002'::bytea || int4send((v ->> 'order')::int), ''::bytea)
                || '\x00'::bytea, '' ORDER BY n), '')
                    FROM jsonb_array_elements(sd -> 'sortCols') WITH ORDINALITY AS u (v, n)), ''::bytea)
        || coalesce('\x0d000a'::bytea || '\x0b0b'::bytea
            || (SELECT int4send(count(*)::int)
                || coalesce(string_agg(int4send(octet_length(key)) || convert_to(key, 'UTF8')
                    || int4send(octet_length(value))
                    || convert_to(value, 'UTF8'), ''), '')
                        FROM jsonb_each_text(sd -> 'parameters') HAVING sd -> 'parameters' IS NOT NULL), ''::bytea)
        || CASE WHEN skewed IS NULL THEN ''::bytea ELSE '\x0c000b'::bytea
        || coalesce('\x0f0001'::bytea || '\x0b'::bytea || int4send(jsonb_array_length(skewed -> 'skewedColNames'))
            || (SELECT coalesce(string_agg(int4send(octet_length(v))
                || convert_to(v, 'UTF8'), '' ORDER BY n), '')
                    FROM jsonb_array_elements_text(skewed -> 'skewedColNames') WITH ORDINALITY AS u (v, n)), ''::bytea)
        || coalesce('\x0f0002'::bytea || '\x0f'::bytea || int4send(jsonb_array_length((skewed -> 'skewedColValues')))
            || (SELECT coalesce(string_agg('\x0b'::bytea || int4send(jsonb_array_length(item))
                || (SELECT coalesce(string_agg(int4send(octet_length(v))
                    || convert_to(v, 'UTF8'), '' ORDER BY n), '')
                            FROM jsonb_array_elements_text(item) WITH ORDINALITY AS u (v, n)), '' ORDER BY n), '')
                        FROM jsonb_array_elements((skewed -> 'skewedColValues')) WITH ORDINALITY AS l (item, n)),
                            ''::bytea)
        || coalesce('\x0d0003'::bytea || '\x0f0b'::bytea
            || int4send(jsonb_array_length((skewed -> 'skewedColValueLocationMaps')))
            || (SELECT coalesce(string_agg('\x0b'::bytea || int4send(jsonb_array_length(item -> 0))
                || (SELECT coalesce(string_agg(int4send(octet_length(v))
                    || convert_to(v, 'UTF8'), '' ORDER BY n), '')
                        FROM jsonb_array_elements_text(item -> 0) WITH ORDINALITY AS u (v, n))
                || int4send(octet_length((item ->> 1)))
                || convert_to((item ->> 1), 'UTF8'), '' ORDER BY n), '')
                    FROM jsonb_array_elements((skewed -> 'skewedColValueLocationMaps')) WITH ORDINALITY AS l (item, n)),
                        ''::bytea)
        || '\x00'::bytea END
        || coalesce('\x02000c'::bytea
            || CASE sd ->> 'storedAsSubDirectories' WHEN 'true' THEN '\x01'::bytea WHEN 'false' THEN '\x00'::bytea END,
                ''::bytea);
END $$;

CREATE OR REPLACE FUNCTION set_table_wire() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN NEW.wire := table_wire(NEW.sd, NEW.partition_keys); RETURN NEW; END $$;
