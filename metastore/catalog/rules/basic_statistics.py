"""Basic statistics of a directory: the number of its files and their size, among the parameters of what it belongs to.

Rule: they are counted where Hive 4.0.1 counts them; a client that says ``DO_NOT_UPDATE_STATS`` has its own.
"""

from collections.abc import Iterable, Mapping

from metastore.acid.table_kinds import is_transactional
from metastore.catalog.model import Parameters, Table
from metastore.catalog.rules.statistics import marked_basic
from metastore.catalog.rules.tables import is_iceberg, is_true, is_view

_COUNTED = ("numFiles", "totalSize", "numFilesErasureCoded")
_UNWANTED = "DO_NOT_UPDATE_STATS"
_GENERATED = "STATS_GENERATED"
_HIDDEN = (".", "_")


def counted(files: Iterable[tuple[str, int]]) -> Parameters:
    """Return the parameters for the files of a directory: path below it, and size. Hidden ones do not count."""
    sizes = [size for path, size in files if not any(name.startswith(_HIDDEN) for name in path.split("/"))]
    return {"numFiles": str(len(sizes)), "totalSize": str(sum(sizes)), "numFilesErasureCoded": "0"}


def has_files(table: Table) -> bool:
    """Return True if all files in a table's directory hold its rows.

    In a transactional or an Iceberg table a snapshot decides which files count.
    """
    return not is_view(table) and not is_transactional(table.parameters) and not is_iceberg(table)


def are_wanted(parameters: Parameters, context: Mapping[str, str]) -> bool:
    """Return True unless the client wants to keep its statistics."""
    return not is_true(context.get(_UNWANTED)) and not is_true(parameters.get(_UNWANTED))


def are_complete(parameters: Parameters) -> bool:
    """Return True if the client has sent all counts."""
    return all(name in parameters for name in _COUNTED)


def are_missing(parameters: Parameters, context: Mapping[str, str]) -> bool:
    """Return True if an altered partition comes without all counts, and should get them."""
    return are_wanted(parameters, context) and not are_complete(parameters)


def renewed(old: Parameters, new: Parameters, context: Mapping[str, str]) -> Parameters:
    """Return an altered partition's parameters; new counts are marked as accurate if a task of Hive made them."""
    changed = any(old.get(name) != new.get(name) for name in _COUNTED)
    due = are_complete(new) and are_wanted(new, context) and (changed or _GENERATED in context)
    return completed(new, {}, context) if due else new


def completed(parameters: Parameters, found: Parameters, context: Mapping[str, str]) -> Parameters:
    """Return the parameters with the counts, marked as accurate if a task of Hive wrote the files."""
    return marked_basic({**parameters, **found}, accurate=context.get(_GENERATED) == "TASK")
