"""Random tables, compacted by our job, as Hive 4 and Trino read them: `make interop-tables`; not part of `make test`.

Major, minor and rebalance compactions over every layout of buckets, original files and schemas that change between
them (RANDOM_TABLES=1-200). `make robustness-tables` has the same tables read by Hive 2.3, whose own merger makes of
the inputs what we do. Trino 380 gets a copy in names of Hive 3, as everywhere.
"""

import base64
import re

import pyorc
import pytest

from metastore.acid.snapshots import RangeState, ValidTxnList
from tests.acceptance.hive_reader.test_random_tables import compact, seeds
from tests.interop.tables.every_type import spelled
from tests.interop.tables.old_copies import registered
from tests.interop.tables.readers import Described, text
from tests.support.acid.creating import full_acid
from tests.support.acid.old_names import copied
from tests.support.acid.random_tables import RandomTable

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize("seed", seeds("1-200"))
def test_hive_4_and_trino_read_what_the_model_has(seed, spark, db, acid_session, oracle, hive, trino, tmp_path):
    table = RandomTable(tmp_path / "t", oracle, seed)
    try:
        for txn_id in (1001, 1002):
            for _ in range(table.random.randint(1, 5)):
                table.step()
            compact(table, spark, txn_id)
            expected = {row_id: told(table, row) for row_id, row in table.rows.items()}
            for question in ("rows", "vectorized"):
                assert read_by_hive(hive, table, question) == expected, f"Hive, {question}"
            if not trino_refuses(table):
                assert read_by_trino(trino, acid_session.client, f"{db}.t{txn_id}", table) == sorted(expected.values(), key=repr), "Trino"
            if table.random.random() < 0.5:
                table.clean()
    except BaseException as error:
        error.add_note("\n".join(table.log))
        raise


def read_by_hive(hive, table, question):
    described = Described(table.columns, [], table.text(), ValidTxnList.everything().format(), insert_only=False)
    found = hive.ask(question, table.directory.as_uri(), described)["rows"]
    rows = {tuple(map(int, row["id"])): as_spelled(table, map(text, row["row"])) for row in found}
    assert len(rows) == len(found), "a ROW__ID came twice"
    return rows


def read_by_trino(trino, client, name, table):
    place = table.directory.parent / name
    copied(table.directory, place, table.state())
    with registered(client, full_acid(client, *name.split("."), table.columns, location=place.as_uri()), table.text()):
        return sorted((as_spelled(table, row) for row in trino.rows(name)), key=repr)


def trino_refuses(table):
    """Whether a file that is read is of Hive before 3, or has ints in a column of doubles: Trino 380 reads neither.

    Nor does it always find the deleted rows of files from before the table had transactions, as Hive 4 does, nor
    leave out the aborted rows of a delta of several transactions: streaming ingest is not supported there (Trino's
    issue 4044).
    """
    doubles = [name for name, kind in table.columns.items() if kind == "double"]
    state = table.state()
    if (state.originals and state.delete_deltas) or any(delta.visible is RangeState.SOME for delta in state.deltas):
        return True
    acid = [file for chosen in (state.base, *state.deltas) if chosen for file in chosen.files]
    for file in (*acid, *state.originals):
        with (table.directory / file.path).open("rb") as opened:
            reader = pyorc.Reader(opened)
            if any(re.search(rf"\b{name}:int\b", str(reader.schema)) for name in doubles):
                return True
            if file in acid and "hive.acid.version" not in reader.user_metadata:
                return True
    return False


def told(table, row):
    """Return a row of the model as all readers spell it."""
    return as_spelled(table, [as_text(kind, value) for kind, value in zip(table.columns.values(), row, strict=True)])


def as_text(kind, value):
    match kind:
        case _ if value is None:
            return None
        case "binary":
            return base64.b64decode(value).hex(" ")
        case "double":
            return str(float(value))
        case "map<string,int>":
            return text(dict(value))
    return text(value)


def as_spelled(table, row):
    return tuple(spelled(kind.upper(), value) for kind, value in zip(table.columns.values(), row, strict=True))
