"""Rows of delegation tokens and of their master keys, and those that a Hive server keeps here for itself."""

from datetime import datetime
from typing import NamedTuple

from metastore.db.engine import Database, PgTx, Row

BATCH = 1000


class StoredToken(NamedTuple):
    """A token that is valid until an instant, and renewable until another."""

    renewer: str
    valid_until: datetime
    expires: datetime
    key: bytes


class MasterKey(NamedTuple):
    """A key with its number."""

    id: int
    key: bytes


def lock_keys(pg: PgTx) -> None:
    """Let one transaction at a time make keys."""
    pg.sql("SELECT pg_advisory_xact_lock(4294, 0)")


def newest_key(pg: PgTx, made_after: datetime) -> MasterKey | None:
    """Return the newest key, if it was made after an instant."""
    rows = pg.sql("SELECT id, key FROM token_keys WHERE made_at > %s ORDER BY id DESC LIMIT 1", (made_after,))
    return next((MasterKey(number, bytes(key)) for number, key in rows), None)


def insert_key(pg: PgTx, key: bytes) -> MasterKey:
    """Add a key."""
    [(number,)] = pg.sql("INSERT INTO token_keys (key, made_at) VALUES (%s, %s) RETURNING id", (key, pg.now))
    return MasterKey(number, key)


def next_sequence(pg: PgTx) -> int:
    """Return the number of a new token."""
    [(number,)] = pg.sql("SELECT nextval('delegation_tokens_sequence_seq')")
    return int(number)


def insert(pg: PgTx, sequence: int, identifier: bytes, token: StoredToken, key_id: int) -> None:
    """Add a token."""
    pg.sql(
        "INSERT INTO delegation_tokens (sequence, identifier, renewer, valid_until, expires, key_id) "
        "VALUES (%s, %s, %s, %s, %s, %s)",
        (sequence, identifier, token.renewer, token.valid_until, token.expires, key_id),
    )


_SELECT = """
    SELECT renewer, valid_until, expires, key FROM delegation_tokens JOIN token_keys ON token_keys.id = key_id
    WHERE identifier = %s"""


def select_valid(db: Database, identifier: bytes) -> StoredToken | None:
    """Return a token that is valid now."""
    rows = db.once(f"{_SELECT} AND valid_until > metastore_now()", (identifier,))
    return _token(rows)


def lock_token(pg: PgTx, identifier: bytes) -> StoredToken | None:
    """Return a token, valid or not, for a change."""
    return _token(pg.sql(f"{_SELECT} FOR UPDATE OF delegation_tokens", (identifier,)))


def update(pg: PgTx, identifier: bytes, valid_until: datetime) -> None:
    """Prolong a token."""
    pg.sql("UPDATE delegation_tokens SET valid_until = %s WHERE identifier = %s", (valid_until, identifier))


def delete(pg: PgTx, identifier: bytes) -> None:
    """Remove a token."""
    pg.sql("DELETE FROM delegation_tokens WHERE identifier = %s", (identifier,))


def delete_expired(pg: PgTx) -> int:
    """Remove some tokens that are no longer valid, and then keys without tokens except the newest; return how many."""
    pg.sql(
        "DELETE FROM delegation_tokens WHERE identifier = ANY(ARRAY("
        "SELECT identifier FROM delegation_tokens WHERE valid_until <= %s LIMIT %s))",
        (pg.now, BATCH),
    )
    removed = pg.rowcount
    pg.sql(
        "DELETE FROM token_keys AS k WHERE id < (SELECT max(id) FROM token_keys) "
        "AND NOT EXISTS (SELECT FROM delegation_tokens WHERE key_id = k.id)"
    )
    return removed


def _token(rows: list[Row]) -> StoredToken | None:
    if not rows:
        return None
    renewer, valid_until, expires, key = rows[0]
    return StoredToken(renewer, valid_until, expires, bytes(key))


def insert_foreign(db: Database, identifier: str, token: str) -> bool:
    """Keep a token of a Hive server; return False if there is one with this identifier."""
    return bool(
        db.once(
            "INSERT INTO hive_tokens (identifier, token) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING true",
            (identifier, token),
        )
    )


def select_foreign(db: Database, identifier: str) -> str | None:
    """Return a token of a Hive server."""
    rows = db.once("SELECT token FROM hive_tokens WHERE identifier = %s", (identifier,))
    return str(rows[0][0]) if rows else None


def delete_foreign(db: Database, identifier: str) -> bool:
    """Remove a token of a Hive server; return False if there is none."""
    return bool(db.once("DELETE FROM hive_tokens WHERE identifier = %s RETURNING true", (identifier,)))


def select_foreign_identifiers(db: Database) -> list[str]:
    """Return the identifiers of all tokens of Hive servers."""
    return [identifier for (identifier,) in db.once("SELECT identifier FROM hive_tokens ORDER BY identifier")]


def insert_foreign_key(pg: PgTx, key: str) -> int:
    """Keep a master key of a Hive server, under `lock_keys`; return its number.

    No sequence counts these: a restore moves sequences beyond what a client can read.
    """
    [(number,)] = pg.sql(
        "INSERT INTO hive_master_keys (id, key) SELECT coalesce(max(id), 0) + 1, %s FROM hive_master_keys RETURNING id",
        (key,),
    )
    return int(number)


def update_foreign_key(db: Database, number: int, key: str) -> bool:
    """Replace a master key of a Hive server; return False if there is none."""
    return bool(db.once("UPDATE hive_master_keys SET key = %s WHERE id = %s RETURNING true", (key, number)))


def delete_foreign_key(db: Database, number: int) -> bool:
    """Remove a master key of a Hive server; return False if there is none."""
    return bool(db.once("DELETE FROM hive_master_keys WHERE id = %s RETURNING true", (number,)))


def select_foreign_keys(db: Database) -> list[str]:
    """Return the master keys of Hive servers."""
    return [key for (key,) in db.once("SELECT key FROM hive_master_keys ORDER BY id")]
