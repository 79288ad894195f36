-- name: select_wires
-- A field is its type, its id and its value; see ShowLocksResponseElement. A lock that waits says for whom.
SELECT count(*)::int, coalesce(string_agg(
    '\x0a0001'::bytea || int8send(ext_id)
    || '\x0b0002'::bytea || thrift_text(db)
    || CASE WHEN "table" = '' THEN '' ELSE '\x0b0003'::bytea || thrift_text("table") END
    || CASE WHEN partition = '' THEN '' ELSE '\x0b0004'::bytea || thrift_text(partition) END
    || '\x080005'::bytea || int4send(array_position(%(states)s::text[], state))
    || '\x080006'::bytea || int4send(array_position(%(types)s::text[], type))
    || '\x0a0007'::bytea || int8send(txn_id)
    || '\x0a0008'::bytea || int8send(coalesce({heartbeat}, 0))
    || coalesce('\x0a0009'::bytea || int8send({acquired_at}), '')
    || '\x0b000a'::bytea || thrift_text("user")
    || '\x0b000b'::bytea || thrift_text(host)
    || '\x08000c'::bytea || int4send(heartbeat_count)
    || '\x0b000d'::bytea || thrift_text(agent_info)
    || CASE WHEN state = '{waiting}'
       THEN coalesce('\x0a000e'::bytea || int8send(blocked_by_ext_id)
            || '\x0a000f'::bytea || int8send(blocked_by_int_id), '')
       ELSE '' END
    || '\x0a0010'::bytea || int8send(int_id) || '\x00'::bytea,
    '' ORDER BY state = '{waiting}', array_position(%(strengths)s::text[], type), ext_id, int_id), '')
  FROM locks WHERE {filter};
