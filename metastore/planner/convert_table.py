"""ALTER TABLE ... SET TBLPROPERTIES ('transactional'='true'): a plain ORC table becomes full ACID, its files stay.

Rule: no row is rewritten. The number in an original file's name and a row's position make the row's id (ACID-8,
ACID-19), so a file that Spark named gets a name of Hive's form; it is moved, not copied, where the file system can.
The caller moves it, while its transaction holds the table exclusively: a planner changes no files. The metastore alone
decides whether the table may be converted; there is no way back.
"""

from collections.abc import Iterable
from typing import NamedTuple

from metastore.acid.bucket import MAX_WRITER_ID
from metastore.acid.names import NO_BUCKET, is_hidden, original_file, parse_file
from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.footers import orc_tails
from metastore.acid_tables.table import AcidTable, require_user_names
from metastore.client.partitions import partition_places
from metastore.errors import InvalidOperationError
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.table_declarations import properties


class Rename(NamedTuple):
    """A file's old and new path, relative to the ACID directory."""

    old: str
    new: str


def convert(call: PlannerCall) -> Answer:
    """Return the files to rename, as pairs of paths; where there is none, make the table transactional.

    Raises: InvalidOperationError for a table that cannot be converted without rewriting it.
    """
    name = call.body.db_and_table()
    declared = call.client.get_table(name.db, name.table)
    table, wanted = AcidTable.of(name, declared), properties(call.body)
    if table.kind is not TableKind.PLAIN:
        raise InvalidOperationError(f"{name} is {table.kind} already.")
    lowered = {key.lower(): value.lower() for key, value in wanted.items()}
    if lowered.get("transactional_properties", "default") != "default":
        raise InvalidOperationError(
            f"{name} can become full ACID only: an insert-only table does not show files "
            "from before. Create one and insert the rows."
        )
    if table.file_format != "orc":
        raise InvalidOperationError(f"{name} is not stored as ORC, which full ACID tables are.")
    require_user_names(name, [*(column.name for column in table.columns), *table.partition_names])
    moves = [move for place in partition_places(call.client, table) for move in _moves(call, place.location)]
    if moves and table.bucket_count:
        raise InvalidOperationError(
            f"{name} is bucketed, and the name of {moves[0][0]} does not say which bucket it is: rewrite the table."
        )
    if not moves:
        declared.parameters = {**(declared.parameters or {}), **wanted}
        call.client.alter_table(name.db, name.table, declared)
    return {"renames": moves}


def _moves(call: PlannerCall, location: str) -> list[tuple[str, str]]:
    paths = [
        entry.path
        for entry in call.files.listing(location)
        if not entry.is_dir and entry.size and not any(is_hidden(part) for part in entry.path.split("/"))
    ]
    orc_tails(call.files, (f"{location}/{path}" for path in paths))
    return [(f"{location}/{old}", f"{location}/{new}") for old, new in renames(paths)]


def renames(paths: Iterable[str]) -> list[Rename]:
    """Return names of Hive's form for the files of an ACID directory that have none; numbers in use are skipped."""
    paths = sorted(paths)
    taken = {path.rpartition("/")[2] for path in paths}
    result = []
    number = 0
    for path in paths:
        parent, slash, name = path.rpartition("/")
        if parse_file(name).is_original and parse_file(name).bucket != NO_BUCKET:
            continue
        while (new := _numbered(number)) in taken:
            number += 1
        taken.add(new)
        result.append(Rename(path, f"{parent}{slash}{new}"))
    return result


def _numbered(number: int) -> str:
    copy, bucket = divmod(number, MAX_WRITER_ID + 1)
    return original_file(bucket) + (f"_copy_{copy}" if copy else "")
