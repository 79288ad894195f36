"""What our sessions rest on is said by us: a database, a role or a URL that has other defaults changes nothing."""

import threading
import zlib
from contextlib import closing

import psycopg2
import pytest
from sqlalchemy import make_url

from metastore.db import migrate, network, sessions
from metastore.db.engine import Database
from metastore.db.leader import Leadership
from metastore.errors import InvalidInputError
from metastore.locks.rules import LockObject, LockRequest, LockState, LockType, WantedLock
from metastore.locks.service import LockService

HOSTILE = {
    "default_transaction_isolation": "'repeatable read'", "default_transaction_read_only": "on", "synchronous_commit": "off",
    "row_security": "on", "standard_conforming_strings": "off", "array_nulls": "off", "transform_null_equals": "on",
    '"TimeZone"': "'Asia/Kathmandu'", '"DateStyle"': "'SQL, DMY'", '"IntervalStyle"': "'iso_8601'", "client_encoding": "latin1",
    "idle_session_timeout": "60000", "idle_in_transaction_session_timeout": "3000", "statement_timeout": "900",
    "lock_timeout": "300", "plan_cache_mode": "force_custom_plan", "enable_seqscan": "on", "jit": "on"}


def execute(url, *statements):
    with closing(psycopg2.connect(url, options="-c default_transaction_read_only=off")) as session:
        session.autocommit = True
        with session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


@pytest.fixture
def hostile_url(postgres, database_url):
    """Return the URL of a database whose defaults are all wrong for us."""
    name = make_url(database_url).database
    execute(database_url, *(f"ALTER DATABASE {name} SET {key} = {value}" for key, value in HOSTILE.items()))
    return database_url


@pytest.fixture
def replicas(hostile_url):
    """Two servers' ways to the database."""
    pair = [Database(hostile_url, pool_size=4) for _ in range(2)]
    yield pair
    for one in pair:
        one.close()


TAIL = zlib.crc32(b"hive\0db") - 2**31   # of the queue of the database `db`


def exclusive(user):
    return LockRequest((WantedLock(LockType.EXCLUSIVE, LockObject("hive", "db", "t")),), 0, user, "h1")


def test_two_replicas_never_hold_one_exclusive_lock(replicas):
    """Both ask while a third session holds the tail of the queue, so that both have begun before either is granted."""
    answers = []
    askers = [threading.Thread(target=lambda db=db, user=user: answers.extend(LockService(db).lock([exclusive(user)])))
              for db, user in zip(replicas, ("ann", "bob"), strict=True)]
    with closing(psycopg2.connect(replicas[0].url)) as holder, holder.cursor() as cursor:
        cursor.execute("SET lock_timeout = 0; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;"
                       "SELECT pg_advisory_xact_lock(4293, key) FROM unnest(%s) AS key", [[TAIL]])
        for asker in askers:
            asker.start()
        while cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid = 4293 "
                             "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
                             ) or cursor.fetchone() != (2,):
            pass
        holder.rollback()
    for asker in askers:
        asker.join(60)

    assert sorted(answer.state for answer in answers) == [LockState.ACQUIRED, LockState.WAITING]


def test_every_setting_is_ours(replicas):
    replicas[0].check()
    found = dict(replicas[0].once("SELECT lower(name), setting FROM pg_settings"))

    ours = {**sessions.CORRECTNESS, **sessions.PLANNING, "statement_timeout": "60000", "lock_timeout": "20000",
            "search_path": '"public"'}
    assert {name: found[name] for name in ours} == ours
    assert {name.strip('"').lower() for name in HOSTILE} <= set(ours)


def test_the_url_does_not_undo_them(database_url):
    url = str(make_url(database_url).render_as_string(hide_password=False))
    given = Database(f"{url}&options=-c%20default_transaction_isolation%3Dserializable%20-c%20work_mem%3D8MB")

    given.check()
    assert given.once("SELECT current_setting('transaction_isolation'), current_setting('work_mem')") == [("read committed", "8MB")]
    given.close()


@pytest.mark.parametrize("role", ["metastore leader", "metastore listener", "metastore migrate"])
def test_the_other_sessions_are_ours_as_well(hostile_url, role):
    with closing(psycopg2.connect(**sessions.parameters(hostile_url, role, {}))) as session, session.cursor() as cursor:
        cursor.execute("SELECT lower(name), setting FROM pg_settings")
        found = dict(cursor.fetchall())

    assert {name: found[name] for name in sessions.CORRECTNESS} == sessions.CORRECTNESS


def test_a_leader_of_an_idle_database_stays_one(hostile_url):
    leader = Leadership(hostile_url)
    assert leader.is_leader("loops")
    assert network.ask(leader._session, "SHOW idle_session_timeout", seconds=60) == [("0",)]
    leader.release()


@pytest.mark.parametrize(("settings", "told"), [
    ({"default_transaction_isolation": "serializable"}, "default_transaction_isolation is 'serializable' and must be 'read committed'"),
    ({"search_path": "other"}, "search_path is 'other' and must be '\"public\"'"),
    ({"session_replication_role": "replica"}, "session_replication_role is 'replica' and must be 'origin'"),
    ({"default_transaction_read_only": "on"}, "; transaction_read_only is 'on' and must be 'off'"),
])
def test_sessions_that_are_not_as_we_said_stop_the_start(database, settings, told):
    """As behind a pooler that drops what a session asks for, or on a standby."""
    options = database.pool._parameters["options"]
    database.pool._parameters["options"] = " ".join([options, *(f"-c {name}={value}" for name, value in settings.items())])

    with pytest.raises(InvalidInputError) as refused:
        database.check()
    assert told in str(refused.value)
    database.pool.close()


def test_a_url_that_cannot_be_read_is_refused_without_its_password():
    with pytest.raises(InvalidInputError, match="cannot be read") as refused:
        Database("postgresql://u:hush@h/x?nothing=1")
    assert "hush" not in str(refused.value)


# ------------------------------------------------------------------------------------------- which schema is ours
@pytest.fixture
def empty_url(postgres):
    with postgres.empty() as url:
        yield url


def test_a_search_path_that_changes_leads_to_the_same_tables(empty_url):
    name = make_url(empty_url).database
    execute(empty_url, 'CREATE SCHEMA "of Hive"', "CREATE SCHEMA other", f"ALTER DATABASE {name} SET search_path = \"of Hive\"")
    first = migrate.upgrade(empty_url)
    assert (first.database, first.schema) == ("", "of Hive")
    execute(empty_url, f"ALTER DATABASE {name} SET search_path = other")

    again = migrate.upgrade(empty_url)
    assert (again.database, again.schema) == (migrate.release_version(), "of Hive")
    database = Database(empty_url, schema=again.schema)
    database.check()
    assert database.once("SELECT next_txn_id FROM txn_counter") == [(1,)]
    assert database.once("SELECT count(*) FROM pg_class WHERE relname = 'txn_counter'") == [(1,)]
    database.close()


def test_two_metastores_and_no_word_which(empty_url):
    execute(empty_url, *(f"CREATE SCHEMA {name}; CREATE TABLE {name}.txn_counter ()" for name in ("a", "b")))
    with pytest.raises(InvalidInputError, match="several metastores, in the schemas a, b,.*search_path"):
        migrate.versions(empty_url)
    execute(empty_url, f"ALTER DATABASE {make_url(empty_url).database} SET search_path = b")
    assert migrate.versions(empty_url) == ("", migrate.release_version(), "b")


def test_no_schema_to_make_tables_in(empty_url):
    execute(empty_url, f"ALTER DATABASE {make_url(empty_url).database} SET search_path = nowhere")
    with pytest.raises(InvalidInputError, match="no schema to make tables in"):
        migrate.versions(empty_url)
