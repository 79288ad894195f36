"""Rows of ``directory_moves``: directories that are on their way to another name.

The row is committed before anything moves and removed by the transaction that commits the rename. So a row that is
found without its owner means: the rename never happened, and what was moved must go back.
"""

from typing import NamedTuple

from metastore.db.engine import PgTx


class Move(NamedTuple):
    """A directory's way from where the catalog still says it is."""

    id: int
    source: str
    target: str


def insert_move(pg: PgTx, table_id: int, source: str, target: str, partition: str = "") -> Move:
    """Announce a move. Commit before moving anything."""
    [(move_id,)] = pg.sql("INSERT INTO directory_moves (table_id, partition, source, target) VALUES (%s, %s, %s, %s) "
                          "RETURNING id", (table_id, partition, source, target))
    return Move(move_id, source, target)


def lock_move(pg: PgTx, move: Move) -> bool:
    """Keep an announced move to oneself; False if it was taken for abandoned and settled."""
    return bool(pg.sql("SELECT 1 FROM directory_moves WHERE id = %s FOR UPDATE", (move.id,)))


def claim_abandoned_moves(pg: PgTx) -> list[Move]:
    """Moves that nobody is working on, held until COMMIT."""
    return [Move(*row) for row in pg.sql(
        "SELECT id, source, target FROM directory_moves ORDER BY id FOR UPDATE SKIP LOCKED")]


def delete_move(pg: PgTx, move: Move) -> None:
    """The move is complete, or undone."""
    pg.sql("DELETE FROM directory_moves WHERE id = %s", (move.id,))


def is_move_target(pg: PgTx, location: str) -> bool:
    """Whether a directory is being moved to this place."""
    return bool(pg.sql("SELECT 1 FROM directory_moves WHERE target = %s", (location,)))
