"""Hive 4 and Trino as readers of a table: every row as a tuple of texts, so that three readers can be compared."""

from dataclasses import dataclass
from typing import Any

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList, decode_aborted_bits
from metastore.client import MetastoreClient
from tests.interop.java import Answering

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Place:
    """One ACID directory of a table and the values of its partition keys."""

    location: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Described:
    """What a reader has to be told: columns, directories, snapshot."""

    columns: dict[str, str]
    places: list[Place]
    write_ids: str
    txns: str
    insert_only: bool


def described(client: MetastoreClient, name: str) -> Described:
    """Return the table's columns, directories and snapshot as they are now."""
    table = client.get_table(*name.split("."))
    places = [Place(table.sd.location, ())]
    if table.partitionKeys:
        places = [Place(one.sd.location, tuple(one.values)) for one in client.get_partitions(*name.split("."), -1)]
    found = client.get_open_txns()
    ids = tuple(found.open_txns or ())
    txns = ValidTxnList(found.txn_high_water_mark, found.min_open_txn or None, ids,
                        frozenset(decode_aborted_bits(ids, found.abortedBits or b"")))
    [valid] = client.get_valid_write_ids(client.types.GetValidWriteIdsRequest(fullTableNames=[name])).tblValidWriteIds
    invalid = tuple(valid.invalidWriteIds)
    write_ids = ValidWriteIdList(name, valid.writeIdHighWaterMark, valid.minOpenWriteId or None, invalid,
                                 frozenset(decode_aborted_bits(invalid, valid.abortedBits or b"")))
    return Described({column.name: column.type for column in table.sd.cols}, places, write_ids.format(), txns.format(),
                     (table.parameters or {}).get("transactional_properties") == "insert_only")


class Hive:
    """Hive's OrcInputFormat: row by row, and in vector mode as Hive runs its queries."""

    def __init__(self, java: Answering) -> None:
        self._java = java

    def rows(self, client: MetastoreClient, name: str, *, vectorized: bool, least_splits: int = 0,
             **conf: str) -> list[tuple[Any, ...]]:
        """All rows; fails when a ROW__ID comes twice in a directory, or there were fewer splits."""
        table = described(client, name)
        question = "vectorized" if vectorized else "rows"
        rows, splits = [], 0
        for place in table.places:
            found = self.ask(question, place.location, table, insert_only=table.insert_only, conf=conf)
            splits += found["splits"]
            if vectorized and found["splits"]:
                assert found["reader"].startswith("VectorizedOrcAcid") is not table.insert_only, found["reader"]
            if not table.insert_only:
                ids = [tuple(row["id"]) for row in found["rows"]]
                assert len(set(ids)) == len(ids), f"a ROW__ID came twice in {place.location}"
            values = [None if one == NO_VALUE else one for one in place.values]
            rows += [(*map(text, row["row"]), *values) for row in found["rows"]]
        assert splits >= least_splits
        return sorted(rows, key=repr)

    def ask(self, question: str, location: str, table: Described, **more: Any) -> Any:
        return self._java.ask(question=question, directory=location, columns=",".join(table.columns),
                              types=":".join(table.columns.values()), write_ids=table.write_ids, txns=table.txns, **more)

    def state(self, directory: str, write_ids: str, txns: str, *, is_compactor: bool) -> Any:
        """Return the files that AcidUtils chooses in a directory."""
        return self._java.ask(question="state", directory=directory, write_ids=write_ids, txns=txns, compactor=is_compactor)

    def write(self, client: MetastoreClient, name: str, location: str, **what: Any) -> None:
        """Write with OrcRecordUpdater into a directory: inserts, updates, deletes under a write id."""
        self.ask("write", location, described(client, name),
                 **{"statement_id": 0, "bucket": 0, "inserts": [], "updates": [], "deletes": [], **what})


class Trino:
    """SQL to a Trino whose catalog ``hive`` is our metastore."""

    def __init__(self, java: Answering) -> None:
        self._java = java

    def sql(self, text: str, **properties: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows; a change has none."""
        return [tuple(row) for row in self._java.ask(sql=text, properties=properties)["rows"]]

    def rows(self, name: str, **properties: str) -> list[tuple[Any, ...]]:
        """All rows of a table."""
        return sorted(self.sql(f"SELECT * FROM {name}", **properties), key=repr)


def text(value: Any) -> str | None:
    """Return a value as Java prints it; structs are lists."""
    return None if value is None else _printed(value)


def _printed(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case list():
            return f"[{', '.join(map(_printed, value))}]"
        case dict():
            return f"{{{', '.join(f'{key}={_printed(one)}' for key, one in value.items())}}}"
    return str(value)
