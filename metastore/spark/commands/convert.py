"""ALTER TABLE ... SET TBLPROPERTIES ('transactional'='true'): a plain ORC table becomes full ACID, its files stay.

Rule: no row is rewritten. The number in an original file's name and a row's position make the row's id (ACID-8,
ACID-19), so a file that Spark named gets a name of Hive's form; it is moved, not copied, where the file system can.
The metastore alone decides whether the table may be converted; there is no way back.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from metastore.acid.bucket import MAX_WRITER_ID
from metastore.acid.names import NO_BUCKET, is_hidden, original_file, parse_file
from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.footers import orc_tails
from metastore.acid_tables.table import AcidTable, require_user_names
from metastore.client import DomainClient
from metastore.errors import InvalidOperationError
from metastore.files import Files, FileSystem


class Rename(NamedTuple):
    """A file's old and new path, relative to the ACID directory."""

    old: str
    new: str


def convert(
    client: DomainClient,
    files: Files,
    hadoop: FileSystem,
    table: AcidTable,
    locations: Sequence[str],
    properties: Mapping[str, str],
) -> None:
    """Make ``table`` transactional; ``locations``: of its partitions, or its own. The caller holds its exclusive lock.

    Files are listed and read through ``files``, and renamed through ``hadoop``, by which Spark wrote them.

    Raises: InvalidOperationError for a table that cannot be converted without rewriting it.
    """
    lowered = {key.lower(): value.lower() for key, value in properties.items()}
    if lowered["transactional"] != "true":
        raise InvalidOperationError(
            f"{table.name}: 'transactional' takes no other value than 'true', and there is no "
            "way back from a transactional table. Copy its rows into a new table instead."
        )
    if table.kind is not TableKind.PLAIN:
        raise InvalidOperationError(f"{table.name} is {table.kind} already.")
    if lowered.get("transactional_properties", "default") != "default":
        raise InvalidOperationError(
            f"{table.name} can become full ACID only: an insert-only table does not show files "
            "from before. Create one and insert the rows."
        )
    if table.file_format != "orc":
        raise InvalidOperationError(f"{table.name} is not stored as ORC, which full ACID tables are.")
    require_user_names(table.name, [*(column.name for column in table.columns), *table.partition_names])
    moves = []
    for location in locations:
        paths = [
            entry.path
            for entry in files.listing(location)
            if not entry.is_dir and entry.size and not any(is_hidden(part) for part in entry.path.split("/"))
        ]
        orc_tails(files, (f"{location}/{path}" for path in paths))
        moves += [(location, rename) for rename in renames(paths)]
    if moves and table.bucket_count:
        raise InvalidOperationError(
            f"{table.name} is bucketed, and the name of {moves[0][0]}/{moves[0][1].old} does "
            "not say which bucket it is: rewrite the table."
        )
    for location, (old, new) in moves:
        hadoop.rename(f"{location}/{old}", f"{location}/{new}")
    declared = client.get_table(table.name.db, table.name.table)
    declared.parameters = {**(declared.parameters or {}), **properties}
    client.alter_table(table.name.db, table.name.table, declared)


def renames(paths: Iterable[str]) -> list[Rename]:
    """New names, of Hive's form, for the files of an ACID directory that have none; numbers in use are skipped."""
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
