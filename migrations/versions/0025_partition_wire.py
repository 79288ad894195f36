"""Each partition's own fields as they go to clients, beside the columns that they are made of."""

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The column is null for rows that were there before: whoever reads one of those encodes it.

    A trigger writes it, so that it is right whichever release writes the row.
    """
    op.execute("""
        CREATE FUNCTION thrift_text(value text) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
            SELECT int4send(octet_length(value)) || convert_to(value, 'UTF8')
        $$""")
    # A field is its type, its id and its value: values (1), createTime (4), lastAccessTime (5), parameters (7),
    # writeId (10) and, begun but not ended, sd (6) with location (2). Fields may stand in any order.
    op.execute(r"""
        CREATE FUNCTION partition_wire("values" text[], create_time int, last_access_time int, parameters jsonb,
                                       write_id bigint, has_descriptor boolean, location text)
        RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
            SELECT '\x0f00010b'::bytea || int4send(cardinality($1))
                || (SELECT coalesce(string_agg(thrift_text(v), '' ORDER BY n), '')
                    FROM unnest($1) WITH ORDINALITY u (v, n))
                || '\x080004'::bytea || int4send(create_time)
                || '\x080005'::bytea || int4send(last_access_time)
                || '\x0d00070b0b'::bytea
                || (SELECT int4send(count(*)::int) || coalesce(string_agg(thrift_text(key) || thrift_text(value), ''), '')
                    FROM jsonb_each_text(parameters))
                || '\x0a000a'::bytea || int8send(write_id)
                || CASE WHEN has_descriptor THEN '\x0c0006'::bytea
                       || coalesce('\x0b0002'::bytea || thrift_text(location), '')
                   ELSE '' END
        $$""")
    op.execute("ALTER TABLE partitions ADD wire bytea")
    op.execute("""
        CREATE FUNCTION set_partition_wire() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            NEW.wire := partition_wire(NEW."values", NEW.create_time, NEW.last_access_time, NEW.parameters,
                                       NEW.write_id, NEW.digest IS NOT NULL, NEW.location);
            RETURN NEW;
        END $$""")
    op.execute(
        "CREATE TRIGGER partitions_wire BEFORE INSERT OR UPDATE ON partitions "
        "FOR EACH ROW EXECUTE FUNCTION set_partition_wire()"
    )


def downgrade() -> None:
    """Nothing but a copy is lost."""
    op.execute("DROP TRIGGER partitions_wire ON partitions")
    op.execute("ALTER TABLE partitions DROP wire")
    op.execute("DROP FUNCTION set_partition_wire()")
    op.execute("DROP FUNCTION partition_wire(text[], int, int, jsonb, bigint, boolean, text)")
    op.execute("DROP FUNCTION thrift_text(text)")
