"""How far the job of a compaction is: a column, and the field metaInfo of what clients get."""

from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

_TABLES = ("compaction_queue", "completed_compactions")


def _text(value: str) -> str:
    return f"int4send(octet_length({value})) || convert_to({value}, 'UTF8')"


def _millis(instant: str) -> str:
    """Whole milliseconds, those that have begun."""
    return f"floor(date_part('epoch', {instant}) * 1000 + 0.0005)::bigint"


def _field(head: str, value: str) -> str:
    return rf"'\x{head}'::bytea || {value}"


def _optional(head: str, value: str) -> str:
    return f"coalesce({_field(head, value)}, '')"


_NUMBER = (
    "CASE NEW.type WHEN 'minor' THEN 1 WHEN 'major' THEN 2 WHEN 'rebalance' THEN 3 WHEN 'abort_txn_cleanup' THEN 4 END"
)
_META_INFO = _optional("0b000a", _text("NEW.meta_info"))
# ShowCompactResponseElement: a field is its type (0b text, 08 i32, 0a i64), its id and its value; 00 ends it.
_BEFORE = (
    _field("0b0001", _text("NEW.db")),
    _field("0b0002", _text('NEW."table"')),
    _optional("0b0003", _text("nullif(NEW.partition, '')")),
    _field("080004", f"int4send({_NUMBER})"),
    _field("0b0005", _text("replace(NEW.state, '_', ' ')")),
    _optional("0b0006", _text("NEW.worker_id")),
    _field("0a0007", f"int8send(coalesce({_millis('NEW.started_at')}, 0))"),
    _optional("0b0008", _text("NEW.run_as")),
    _field("0a0009", "int8send(coalesce(NEW.highest_write_id, 0))"),
)
_BEHIND = (
    _optional("0a000b", f"int8send({_millis('NEW.ended_at')})"),
    _field("0b000c", _text("coalesce(nullif(NEW.hadoop_job_id, ''), 'None')")),
    _field("0a000d", "int8send(NEW.id)"),
    _optional("0b000e", _text("NEW.error_message")),
    _optional("0a000f", f"int8send({_millis('NEW.enqueued_at')})"),
    _optional("0b0010", _text("NEW.worker_version")),
    _optional("0b0011", _text("NEW.initiator_id")),
    _optional("0b0012", _text("NEW.initiator_version")),
    _optional("0a0013", f"int8send({_millis('NEW.cleaner_started_at')})"),
    _field("0b0014", _text("coalesce(nullif(NEW.pool, ''), 'default')")),
    _field("0a0015", "int8send(coalesce(NEW.next_txn_id, 0))"),
    _field("0a0016", "int8send(coalesce(NEW.txn_id, 0))"),
    _field("0a0017", f"int8send(coalesce({_millis('NEW.committed_at')}, 0))"),
    _field("0a0018", "int8send(coalesce(NEW.highest_write_id, 0))"),
    r"'\x00'::bytea",
)
_MADE_OF = (
    'id, db, "table", partition, type, state, worker_id, worker_version, initiator_id, initiator_version, run_as, pool, '
    "enqueued_at, started_at, ended_at, cleaner_started_at, committed_at, highest_write_id, txn_id, next_txn_id, "
    "hadoop_job_id, error_message"
)


def upgrade() -> None:
    """No row changes, since none has the new field."""
    for table in _TABLES:
        op.execute(f"ALTER TABLE {table} ADD meta_info text")
    _replace((*_BEFORE, _META_INFO, *_BEHIND), f"{_MADE_OF}, meta_info")


def downgrade() -> None:
    """What is lost is only shown."""
    _replace((*_BEFORE, *_BEHIND), _MADE_OF)
    for table in _TABLES:
        op.execute(f"UPDATE {table} SET id = id WHERE meta_info IS NOT NULL")
        op.execute(f"ALTER TABLE {table} DROP meta_info")


def _replace(fields: tuple[str, ...], made_of: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION set_compaction_wire() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN NEW.wire := {' || '.join(fields)}; RETURN NEW; END $$"
    )
    for table in _TABLES:
        op.execute(f"DROP TRIGGER {table}_wire ON {table}")
        op.execute(
            f"CREATE TRIGGER {table}_wire BEFORE INSERT OR UPDATE OF {made_of} ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION set_compaction_wire()"
        )
