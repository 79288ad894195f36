"""What a recorded server sends becomes a pgbench script that any number of clients can run."""

import pytest

from benchmarks.equal_sql import Recorded, Script, UnlikeError, statements
from benchmarks.scenarios import table_of
from benchmarks.wiretap import Exchange


def round_of(client: int, txn: int, lock: int) -> list[Exchange]:
    table = table_of(client)
    return [
        Exchange(f"SELECT open({7})", ["first_id", "at"], [[str(txn), "2024-05-01 10:00:00+00"]]),
        Exchange(f"BEGIN; SELECT ask(ARRAY[{txn}], '{table}')", ["locks"], [[f"{{{lock}}}"]]),
        Exchange(f"INSERT INTO log VALUES ({lock + 1000}, 'a;b'); COMMIT"),
        Exchange(f"SELECT release('{{{lock}}}'::bigint[])"),
    ]


def recorded(client: int, *rounds: tuple[int, int]) -> Recorded:
    first, second = (round_of(client, *one) for one in rounds)
    return Recorded([], (first, second))


def test_ids_become_variables() -> None:
    script = Script(recorded(0, (501, 61), (503, 62)), recorded(1, (505, 63), (506, 64)))
    lines = script.text.split("\n")
    table = table_of(0)[:-1] + ":client_id"
    assert lines[4:] == [
        "\\set made0 1000000000 * (:client_id + 1) + 1 * :n + 1061",
        "SELECT open(7) \\aset m0_",
        "BEGIN \\;",
        f"SELECT ask(ARRAY[:m0_first_id], '{table}') \\aset m1_",
        "INSERT INTO log VALUES (:made0, 'a;b') \\;",
        "COMMIT;",
        "SELECT release(':m1_locks'::bigint[]);",
        ""]


def test_rounds_that_differ_are_refused() -> None:
    one, other = [Exchange("SELECT 1")], [Exchange("SELECT 1 + 1")]
    with pytest.raises(UnlikeError, match="different statements"):
        Script(Recorded([], (one, other)), Recorded([], (one, one)))
    with pytest.raises(UnlikeError, match="messages"):
        Script(Recorded([], (one, [])), Recorded([], (one, one)))


def test_semicolons_within_texts_end_nothing() -> None:
    assert list(statements("SELECT ';', \"a;b\"; PREPARE p AS SELECT $1::int; DO $$ a; b $$;; ")) == [
        "SELECT ';', \"a;b\"", "PREPARE p AS SELECT $1::int", "DO $$ a; b $$"]
