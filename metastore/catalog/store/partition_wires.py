"""Partitions as the bytes that PostgreSQL keeps of each in Thrift's binary protocol (``partitions.wire``).

A piece is one statement: the bytes of some partitions in a row, where each ends, and the descriptors that they share.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from struct import unpack
from typing import Any, NamedTuple

from metastore.catalog.model import Json, Table
from metastore.db import arrays
from metastore.db.engine import PgTx, Row

_LENGTH = 4
_WIRE = (
    'coalesce(p.wire, partition_wire(p."values", p.create_time, p.last_access_time, p.parameters, p.write_id, '
    "p.digest IS NOT NULL, p.location))"
)


_SOME = 2000
"""Named partitions in a piece."""


class Piece(NamedTuple):
    """Some partitions, by name.

    The bytes of each lack the end: the fields behind its location, and its table's names.
    """

    wires: bytes
    lengths: Sequence[int]
    digests: Sequence[str]
    """Of the descriptor of each; an empty text where it has none."""
    last: str
    """The name of the last."""
    descriptors: Mapping[str, Json]
    """By digest."""

    @property
    def size(self) -> int:
        """The number of partitions."""
        return len(self.lengths)


def select_named(pg: PgTx, table: Table, names: Sequence[str]) -> list[Piece]:
    """Return the table's partitions with these names, each there and none twice, in their order if that is sorted."""
    return [
        select_piece(pg.binary, table, "p.name = ANY(%s::text[])", (arrays.literal(some),), "", len(some))
        for at in range(0, len(names), _SOME)
        for some in (names[at : at + _SOME],)
    ]


def select_piece(
    binary: Callable[..., Row], table: Table, condition: str, parameters: Sequence[Any], after: str, most: int
) -> Piece:
    """Return the first of the table's partitions whose names follow ``after`` and that meet a condition on ``p``."""
    wires, lengths, digests, last, sds = binary(
        f"WITH found AS MATERIALIZED (SELECT p.name, p.digest, {_WIRE} AS wire FROM partitions p "
        f"WHERE p.table_id = %s AND p.name > %s AND {condition} ORDER BY p.name LIMIT %s) "
        "SELECT string_agg(wire, ''), string_agg(int4send(octet_length(wire)), ''), "
        "string_agg(coalesce(digest, ''), ','), max(name), "
        "(SELECT jsonb_object_agg(d.digest, d.sd) FROM partition_descriptors d "
        "WHERE d.table_id = %s AND d.digest IN (SELECT digest FROM found))::text FROM found",
        (table.id, after, *parameters, most, table.id),
    )
    if wires is None:
        return Piece(b"", (), (), "", {})
    sizes = unpack(f">{len(lengths) // _LENGTH}i", lengths)
    return Piece(wires, sizes, digests.decode().split(","), last.decode(), json.loads(sds or "{}"))
