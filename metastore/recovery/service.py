"""Recovery of a restored database: it is made to fit the directories before any process uses it (ADR 0049).

Rule: nothing is removed or moved, and nothing is asked twice: each location is listed once. The findings are recorded
in the PostgreSQL transaction of the restore, so that a server never meets a half-restored database.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from metastore.acid.names import DirectoryName, MalformedNameError, is_hidden, parse_directory
from metastore.db.engine import PgTx
from metastore.files import FileEntry, Files
from metastore.ids import TableName
from metastore.recovery import rules, store
from metastore.recovery.rules import Known, RecoveryVerdict, RestoredDirectory
from metastore.roots import local_path


@dataclass
class Report:
    """The results. ``hidden``, ``kept`` and ``strange``: (table, partition, directory)."""

    aborted: int = 0
    next_txn_id: int = 0
    hidden: list[tuple[str, str, str]] = field(default_factory=list)
    kept: list[tuple[str, str, str]] = field(default_factory=list)
    strange: list[tuple[str, str, str]] = field(default_factory=list)


def recover(pg: PgTx, files: Files | None) -> Report:
    """Advance ids above all that were allocated, and make unknown write ids void.

    ``files``: None if the directories are of the same instant as the database. Raises: InvalidInputError, OSError.
    """
    report = Report()
    next_txn_id, reserved_until = store.select_counter(pg)
    open_txns, aborted = store.select_txns(pg)
    verdicts: dict[TableName, RecoveryVerdict] = {}
    highest: dict[TableName, int] = {}
    tables = store.select_transactional(pg)
    for table in tables:
        directories = list(_directories(files, table)) if files else []
        known = Known(
            store.select_next_write_id(pg, table.name),
            next_txn_id,
            store.select_in_doubt(pg, table.name),
            open_txns,
            aborted,
            store.select_required(pg, table.name),
        )
        verdict = verdicts[table.name] = rules.verdict(directories, known)
        highest[table.name] = verdict.highest
        report.hidden += _rows(table.name, verdict.hidden)
        report.kept += _rows(table.name, verdict.kept)
    if files:
        for name, strange in _strangers(pg, files, tables).items():
            highest[name] = max(highest.get(name, 0), *(rules.span(directory.name)[1] for directory in strange))
            report.strange += _rows(name, strange)

    results = {result.txn_id for verdict in verdicts.values() for result in verdict.void_results}
    finished = {txn_id for verdict in verdicts.values() for txn_id in verdict.finished}
    owners = max((len({void.write_id for void in verdict.void}) for verdict in verdicts.values()), default=0)
    first_owner = max(next_txn_id, reserved_until, *(txn_id + 1 for txn_id in results | finished)) + rules.TXN_GAP
    report.next_txn_id = first_owner + owners
    store.update_finished(pg, finished & open_txns)
    store.insert_void(pg, first_owner, [(name, verdict.void) for name, verdict in verdicts.items()])
    for name, verdict in verdicts.items():
        store.insert_in_doubt(pg, name, verdict.in_doubt)
    store.insert_void_results(pg, [(name, verdict.void_results) for name, verdict in verdicts.items()], open_txns)
    report.aborted = store.abort_open(pg, "the database was restored from a backup, which does not know its end")
    store.update_cleanings(pg)
    store.update_counters(pg, report.next_txn_id, rules.TXN_GAP)
    store.update_write_ids(pg, list(highest.items()), rules.WRITE_ID_GAP)
    return report


def _directories(files: Files, table: store.TablePlaces) -> Iterator[RestoredDirectory]:
    """Yield the bases and deltas of a table, each in the partition whose location it is in."""
    places = sorted(((_plain(location), location, partition) for partition, location in table.places), reverse=True)
    seen: set[str] = set()
    for place, location, _ in sorted(places):
        if any(place.startswith(f"{outer}/") for outer in seen):
            continue  # The listing of the outer directory includes this place.
        seen.add(place)
        for path, name in _acid(files.listing(location)):
            whole = f"{place}/{path}"
            partition = next(inner for above, _, inner in places if whole.startswith(f"{above}/"))
            yield RestoredDirectory(partition, f"{location.rstrip('/')}/{path}", name)


def _strangers(
    pg: PgTx, files: Files, tables: Collection[store.TablePlaces]
) -> dict[TableName, list[RestoredDirectory]]:
    """Return bases and deltas outside the known tables, by the name of the table that would be at their place."""
    databases = store.select_databases(pg)
    known = {
        *map(_plain, store.select_locations(pg)),
        *(_plain(location) for *_, location in databases),
        *(_plain(location) for table in tables for _, location in table.places),
    }
    strange: dict[TableName, list[RestoredDirectory]] = {}
    for catalog, db, location in databases:
        for child in files.children(location):
            place = f"{_plain(location)}/{child}"
            if is_hidden(child) or any(
                known_place == place or known_place.startswith(f"{place}/") for known_place in known
            ):
                continue
            for path, name in _acid(files.listing(f"{location.rstrip('/')}/{child}")):
                owner = _owner(catalog, db, child, path)
                strange.setdefault(owner, []).append(
                    RestoredDirectory("", f"{location.rstrip('/')}/{child}/{path}", name)
                )
    return strange


def _owner(catalog: str, db: str, child: str, path: str) -> TableName:
    """Return the owner of the default place: a table of the database, or one of an unknown database."""
    inner = path.partition("/")[0]
    if child.endswith(".db") and parse_directory(inner) is None:
        return TableName(catalog, child.removesuffix(".db").lower(), inner.lower())
    return TableName(catalog, db, child.lower())


def _acid(entries: list[FileEntry]) -> Iterator[tuple[str, DirectoryName]]:
    """Yield the outermost bases and deltas of a listing that are not empty, with their paths."""
    done: set[str] = set()
    for entry in entries:
        parts = entry.path.split("/")
        for depth, part in enumerate(parts[:-1] if not entry.is_dir else parts, 1):
            if is_hidden(part):
                break
            try:
                name = parse_directory(part)
            except MalformedNameError:  # Readers get an error about it.
                break
            if name is not None:
                path = "/".join(parts[:depth])
                if path not in done:
                    done.add(path)
                    yield path, name
                break


def _plain(location: str) -> str:
    return str(local_path(location) or location).rstrip("/")


def _rows(name: TableName, directories: list[RestoredDirectory]) -> list[tuple[str, str, str]]:
    return [(str(name), directory.partition, directory.path) for directory in directories]
