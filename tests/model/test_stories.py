"""Random stories: whatever happens in whatever order, server and model answer alike.

A failure prints the story, which is a script: put it below tests/scripts to keep it.
"""

from itertools import count

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.script_model import Model
from tests.support.script_server import ThriftDriver
from tests.support.scripts import DASHES, Story, play

NUMBERS = count(1)
txns = st.sampled_from(["t1", "t2", "t3", "t4"])
locks = st.sampled_from(["l1", "l2", "l3", "l4", "l5", "l6"])
tables = st.sampled_from(["DB.a", "DB.b"])
objects = st.sampled_from(["DB", "DB.a", "DB.b", "DB.a/p=1", "DB.a/p=2", "DB.b/p=1"])
operations = st.sampled_from(["select", "insert", "update", "delete", "no_txn"])
wanted = st.builds(lambda kind, place: f"{kind} {place}",
                   st.sampled_from(["shared_read", "shared_write", "excl_write", "exclusive"]), objects)


def _lock(name, txn, operation, flags, components):
    owner = f"txn={txn} " if txn else ""
    return f"lock {name} {owner}op={operation} {' '.join(sorted(flags))} {', '.join(components)}"


commands = st.one_of(
    st.builds(_lock, locks, st.none() | txns, operations, st.sets(st.sampled_from(["dynamic", "zero_wait", "ctas"])),
              st.lists(wanted, min_size=1, max_size=2)),
    st.builds(lambda name: f"check {name}", locks), st.builds(lambda name: f"unlock {name}", locks),
    st.builds(lambda name, table: f"write {name} {table}", txns, tables),
    st.builds(lambda name, table, operation, names: f"partitions {name} {table} op={operation} {' '.join(names)}",
              txns, tables, st.sampled_from(["insert", "update", "delete"]),
              st.lists(st.sampled_from(["p=1", "p=2"]), unique=True)),
    st.builds(lambda name: f"commit {name}", txns), st.builds(lambda name: f"abort {name}", txns),
    st.builds(lambda name: f"heartbeat {name}", txns), st.builds(lambda name: f"snapshot {name}", txns),
    st.builds(lambda name, table: f"reads {name} {table}", txns, tables), st.just("open"), st.just("locks"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(commands, max_size=25))
def test_server_and_model_agree(lines, client):
    text = "\n".join([*_named(lines), DASHES, "", ""]).replace("DB", f"db{next(NUMBERS)}")
    driver = ThriftDriver(client, None, None)

    try:
        assert play(text, driver) == play(text, Model())
    finally:
        _end_everything(driver)


def _named(lines):
    """The story with a name of its own for everything that is made, and without talk of what is not made yet."""
    txns, locks = ["t1", "t2"], 0
    yield "open t1 t2"
    for line in lines:
        words = line.split()
        if words[0] == "open":
            txns.append(f"t{len(txns) + 1}")
            words = ["open", txns[-1]]
        elif words[0] == "lock":
            locks += 1
            words[1] = f"l{locks}"
        if words[0] not in {"snapshot", "reads"} or words[1] in txns:
            yield " ".join(words)


def _end_everything(driver):
    """Stories share a server: locks and open transactions of one must not be seen by the next."""
    story = Story(driver)
    story.txns = {str(txn_id): txn_id for txn_id in driver.open_txns()}
    story._abort(list(story.txns))
    for lock, _ in driver.locks():
        driver.unlock(lock.ext_id)
