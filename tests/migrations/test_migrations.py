"""The migrations add up to the declared tables, once, whoever runs them and however often they are interrupted."""

import os
import re
import subprocess
import sys
import threading
from contextlib import closing
from itertools import pairwise

import psycopg2
import pytest
import sqlalchemy
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import metastore.db.catalog_tables
from metastore.db import embedded, migrate
from metastore.db.tables import metadata
from metastore.errors import InvalidInputError, UnavailableError
from tests.docs import schema

BASELINE = 41
"""The migration that makes the schema of release 0.2."""
HIVE_VIEWS = "0045"


@pytest.fixture
def empty_url(postgres):
    with postgres.empty() as url:
        yield url


def rows(url, query):
    with closing(psycopg2.connect(url)) as session, session.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


def run(url, statements):
    with closing(psycopg2.connect(url)) as session, session, session.cursor() as cursor:
        cursor.execute(statements)


def objects(url):
    """Tables, columns, indexes and functions; columns, because a migration may add nothing else."""
    return {tuple(row) for row in rows(url, """
        SELECT 'relation', relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
        UNION SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'
        UNION SELECT 'function', proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace""")}


def test_they_add_up_to_the_declared_objects(empty_url):
    migrate.upgrade(empty_url)
    from alembic.autogenerate import compare_metadata

    assert metastore.db.catalog_tables
    engine = sqlalchemy.create_engine(sqlalchemy.make_url(empty_url).set(drivername="postgresql+psycopg2"))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        differences = compare_metadata(context, metadata)
    engine.dispose()

    assert differences == []


def dumped(url):
    """Everything that there is, as PostgreSQL tells it."""
    done = subprocess.run([embedded.programs() / "pg_dump", "--no-owner", "--inserts", url], capture_output=True, text=True, check=True)
    return re.sub(r"^\\(un)?restrict .*$", "", done.stdout, flags=re.MULTILINE)


def test_an_empty_database_gets_what_the_migrations_add_up_to(postgres, empty_url):
    migrate.upgrade(empty_url)
    with postgres.empty() as migrated_url:
        migrate._run_alembic(migrated_url, "public")
        migrated = dumped(migrated_url)

    made = dumped(empty_url)

    assert "CREATE TRIGGER" in made
    assert made.split("\n") == migrated.split("\n")


CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 AND contype <> 'n'
  AND conrelid::regclass::text <> 'alembic_version'
UNION ALL SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'
UNION ALL SELECT relname, 'options', array_to_string(reloptions, ',') FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND reloptions IS NOT NULL AND relkind = 'r'
UNION ALL SELECT relname, 'persistence', relpersistence::text FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'alembic_version'
"""


def test_constraints_indexes_and_storage_are_the_declared_ones(postgres, empty_url):
    """What Alembic's comparison does not look at: CHECKs, partial indexes, fill factors, unlogged tables."""
    migrate.upgrade(empty_url)
    with postgres.empty() as declared_url:
        engine = sqlalchemy.create_engine(sqlalchemy.make_url(declared_url).set(drivername="postgresql+psycopg2"))
        metadata.create_all(engine)
        engine.dispose()
        declared = set(rows(declared_url, CONSTRAINTS))

    migrated = set(rows(empty_url, CONSTRAINTS))

    assert migrated - declared == set()
    assert declared - migrated == set()


def test_numbers_have_no_gaps_and_one_line(empty_url):
    config = Config()
    config.set_main_option("script_location", str(migrate.directory()))
    scripts = ScriptDirectory.from_config(config)

    revisions = [script.revision for script in reversed(list(scripts.walk_revisions()))]

    assert revisions == [f"{number:04}" for number in range(BASELINE, BASELINE + len(revisions))]
    assert scripts.get_current_head() == migrate.release_version()
    for path in (migrate.directory() / "versions").glob("*.py"):
        assert re.fullmatch(r"\d{4}_[a-z_]+\.py", path.name)
        assert "metastore.db" not in path.read_text(), "a migration is written out: the tables of today are not its tables"


FUNCTIONS = """
SELECT proname, pg_get_function_identity_arguments(oid), prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT tgrelid::regclass::text, tgname, tgenabled::text || pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT table_name, column_name, concat(data_type, is_nullable, column_default)
FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'
"""


def test_each_step_back_leaves_what_was_there_before_the_step(empty_url):
    """Also of functions, of which a newer text may not stay behind."""
    from alembic import command

    engine = sqlalchemy.create_engine(sqlalchemy.make_url(empty_url).set(drivername="postgresql+psycopg2"))
    config = Config()
    config.set_main_option("script_location", str(migrate.directory()))
    numbers = [f"{number:04}" for number in range(BASELINE, int(migrate.release_version()) + 1)]
    before, after = {}, {}
    with engine.connect() as config.attributes["connection"]:
        for number in numbers:
            command.upgrade(config, number)
            before[number] = set(rows(empty_url, CONSTRAINTS)) | set(rows(empty_url, FUNCTIONS))
        for number in reversed(numbers[:-1]):
            command.downgrade(config, number)
            after[number] = set(rows(empty_url, CONSTRAINTS)) | set(rows(empty_url, FUNCTIONS))
    engine.dispose()

    assert {number: after[number] ^ before[number] for number in after} == {number: set() for number in after}


def test_lines_that_release_0_2_kept_are_forgotten(empty_url):
    """Nobody renews them any more: it makes those anew that it does not find."""
    from alembic import command

    engine = sqlalchemy.create_engine(sqlalchemy.make_url(empty_url).set(drivername="postgresql+psycopg2"))
    config = Config()
    config.set_main_option("script_location", str(migrate.directory()))
    with engine.connect() as config.attributes["connection"]:
        command.upgrade(config, f"{BASELINE:04}")
        with closing(psycopg2.connect(empty_url)) as session, session, session.cursor() as cursor:
            cursor.execute("INSERT INTO catalogs (name, location, create_time) VALUES ('hive', 'file:/w', 0);"
                           "INSERT INTO databases (catalog, name, location) VALUES ('hive', 'd', 'file:/w/d');"
                           "INSERT INTO tables (catalog, db, name, type, sd) VALUES ('hive', 'd', 't', 'MANAGED_TABLE', '{}')")
        kept = rows(empty_url, "SELECT meta IS NULL FROM tables")
        command.upgrade(config, "head")
    engine.dispose()

    assert (kept, rows(empty_url, "SELECT meta IS NULL FROM tables")) == ([(False,)], [(True,)])


def views_of_hive(url):
    return {name for [name] in rows(url, "SELECT table_name FROM information_schema.views WHERE table_schema = 'hive'")}


def stepped(url, *revisions):
    """Migrate to each of the revisions, by Alembic, in turn."""
    from alembic import command

    engine = sqlalchemy.create_engine(sqlalchemy.make_url(url).set(drivername="postgresql+psycopg2"))
    config = Config()
    config.set_main_option("script_location", str(migrate.directory()))
    with engine.connect() as config.attributes["connection"]:
        for revision in revisions:
            (command.downgrade if "-" in revision else command.upgrade)(config, revision)
    engine.dispose()


def test_views_of_hive_come_with_the_tables_and_go_with_their_migration(empty_url):
    stepped(empty_url, f"{BASELINE:04}")
    before = rows(empty_url, "SELECT nspname FROM pg_namespace WHERE nspname = 'hive'")
    stepped(empty_url, HIVE_VIEWS)
    there = views_of_hive(empty_url)
    stepped(empty_url, f"{HIVE_VIEWS}-1")

    assert (before, {"TBLS", "TXNS"} < there) == ([], True)
    assert rows(empty_url, "SELECT nspname FROM pg_namespace WHERE nspname = 'hive'") == []


def test_a_role_that_may_not_make_schemas_gets_its_tables(empty_url):
    """And the views as soon as somebody has made the schema for it."""
    run(empty_url, "CREATE ROLE lowly; GRANT CREATE ON SCHEMA public TO lowly")
    lowly = f"{empty_url}{'&' if '?' in empty_url else '?'}options=-c%20role%3Dlowly"
    try:
        migrate.upgrade(lowly)
        assert rows(lowly, "SELECT tableowner, to_regnamespace('hive') FROM pg_tables WHERE tablename = 'txns'") == [("lowly", None)]

        run(empty_url, "CREATE SCHEMA hive AUTHORIZATION lowly")
        run(lowly, "SELECT make_hive_views()")
        assert {"TBLS", "TXNS"} < views_of_hive(empty_url)
    finally:
        run(empty_url, "DROP OWNED BY lowly; DROP ROLE lowly")


def test_the_schema_of_another_metastore_is_let_alone(empty_url):
    """Of a Hive metastore in the same database, or of one of ours."""
    run(empty_url, 'CREATE SCHEMA hive; CREATE TABLE hive."TBLS" ("TBL_ID" bigint); CREATE SCHEMA second')
    migrate.upgrade(empty_url)
    stepped(empty_url, f"{HIVE_VIEWS}-1")
    assert views_of_hive(empty_url) == set()
    assert rows(empty_url, 'SELECT count(*) FROM hive."TBLS"') == [(0,)]

    run(empty_url, "DROP SCHEMA hive CASCADE")
    migrate.upgrade(empty_url)
    migrate._make(empty_url, "second")
    run(empty_url, "INSERT INTO public.catalogs (name, location) VALUES ('mine', 'file:/w')")
    assert rows(empty_url, 'SELECT "NAME" FROM hive."CTLGS"') == [("mine",)]


@pytest.mark.parametrize("path", schema.functions(), ids=str)
def test_the_functions_beside_the_stores_are_those_of_the_newest_migration(empty_url, path):
    migrate.upgrade(empty_url)
    migrated = rows(empty_url, FUNCTIONS)
    with closing(psycopg2.connect(empty_url)) as session, session, session.cursor() as cursor:
        cursor.execute(path.read_text())

    assert sorted(rows(empty_url, FUNCTIONS)) == sorted(migrated)


def test_the_database_of_a_hive_metastore_is_refused(empty_url):
    """Its hive-site.xml names it; a namespace of our own in it is fine, and so are such tables where ours are already."""
    with closing(psycopg2.connect(empty_url)) as session, session, session.cursor() as cursor:
        cursor.execute('CREATE TABLE "TBLS" ("TBL_ID" bigint); CREATE SCHEMA ours')
    with pytest.raises(InvalidInputError, match=r"has the tables of a Hive metastore, .*start-with-your-hive-site.md"):
        migrate.upgrade(empty_url)
    assert migrate.versions(empty_url).database == ""
    before = migrate.upgrade(f"{empty_url}{'&' if '?' in empty_url else '?'}options=-csearch_path%3Dours")
    assert (before.database, before.schema) == ("", "ours")
    assert migrate.upgrade(empty_url).database == migrate.release_version()


def test_two_servers_start_together(empty_url):
    """One of them migrates, the other waits and finds nothing left to do."""
    code = f"from metastore.db import migrate; print(migrate.upgrade({empty_url!r}).database or 'empty')"
    servers = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for _ in range(3)]
    ends = [server.communicate(timeout=240) for server in servers]

    assert [server.returncode for server in servers] == [0, 0, 0], ends
    found = sorted(out.strip() for out, _ in ends)
    assert found[-1] == "empty"
    assert set(found) <= {"empty", migrate.release_version()}
    assert found.count("empty") == 1
    assert migrate.versions(empty_url).database == migrate.release_version()


def test_a_crash_while_the_schema_is_made_leaves_nothing(empty_url, tmp_path, monkeypatch):
    script = (migrate.directory() / "schema.sql").read_text()
    (tmp_path / "schema.sql").write_text(f"{script}; SELECT pg_terminate_backend(pg_backend_pid())")
    (tmp_path / "versions").symlink_to(migrate.directory() / "versions")
    with monkeypatch.context() as patched:
        patched.setattr(migrate, "directory", lambda: tmp_path)
        with pytest.raises(UnavailableError):
            migrate.upgrade(empty_url)
    between = objects(empty_url)

    migrate.upgrade(empty_url)

    assert between == set()
    assert migrate.versions(empty_url).database == migrate.release_version()


def test_a_crash_in_the_middle_of_migrations_is_continued(empty_url):
    """Killed inside the last migration: those before stay, it leaves nothing, and the next start applies it."""
    last = migrate.release_version()
    code = f"""
import os, signal
import alembic.ddl.impl
execute = alembic.ddl.impl.DefaultImpl._exec
def dying(self, construct, *args, **kwargs):
    result = execute(self, construct, *args, **kwargs)
    if "alembic_version" in str(construct) and {last!r} in str(construct):
        os.kill(os.getpid(), signal.SIGKILL)   # everything of this migration is done, nothing is committed
    return result
alembic.ddl.impl.DefaultImpl._exec = dying
from metastore.db import migrate
migrate._run_alembic({empty_url!r}, "public")
"""
    died = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120)
    assert died.returncode == -9, died.stderr
    between = migrate.versions(empty_url).database
    half = objects(empty_url)

    migrate.upgrade(empty_url)

    assert between == ("" if int(last) == BASELINE else f"{int(last) - 1:04}")
    assert (("relation", "txn_counter") in half) == bool(between)
    assert ("relation", "txn_counter") in objects(empty_url)
    assert migrate.versions(empty_url).database == last


def test_a_database_older_than_the_baseline_is_brought_there_by_release_0_2(empty_url):
    migrate.upgrade(empty_url)
    with closing(psycopg2.connect(empty_url)) as session, session, session.cursor() as cursor:
        cursor.execute("UPDATE alembic_version SET version_num = '0040'")

    with pytest.raises(migrate.SchemaTooOldError, match=r"0040.*older than release 0\.2 \(0041\).*of release 0\.2 first"):
        migrate.upgrade(empty_url)
    assert migrate.usable(empty_url).database == "0040"  # a worker waits until somebody has done it


@pytest.mark.parametrize("oldest", ["UPDATE oldest_release SET version = '8999'", "DELETE FROM oldest_release"])
@pytest.mark.parametrize("step", [migrate.upgrade, migrate.usable])
def test_an_older_release_refuses_a_newer_schema(empty_url, step, oldest):
    migrate.upgrade(empty_url)
    with closing(psycopg2.connect(empty_url)) as session, session, session.cursor() as cursor:
        cursor.execute(f"UPDATE alembic_version SET version_num = '9000'; {oldest}")

    with pytest.raises(migrate.SchemaTooNewError, match="9000.*newer release.*Start the newer release"):
        step(empty_url)


@pytest.mark.parametrize("step", [migrate.upgrade, migrate.usable])
def test_an_older_release_works_on_a_newer_schema_that_says_so(empty_url, step):
    """As when a pod of the release before starts again in the middle of an upgrade, or after one that is taken back."""
    migrate.upgrade(empty_url)
    with closing(psycopg2.connect(empty_url)) as session, session, session.cursor() as cursor:
        cursor.execute("UPDATE alembic_version SET version_num = '9000'")

    assert step(empty_url)[:2] == ("9000", migrate.release_version())
    assert migrate.versions(empty_url).database == "9000"


def test_waits_for_the_lock_and_not_for_a_table_without_end(empty_url, monkeypatch):
    """A migration that meets a locked table gives up, is undone, and may be repeated."""
    monkeypatch.setattr(migrate, "_WAIT_FOR_A_TABLE", "100ms")
    with closing(psycopg2.connect(empty_url)) as session, session.cursor() as cursor:
        cursor.execute("CREATE TABLE alembic_version (version_num varchar(32) PRIMARY KEY)")
        session.commit()
        cursor.execute("LOCK TABLE alembic_version IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(UnavailableError, match="lock timeout"):
            migrate.upgrade(empty_url)


def test_the_command_says_both_versions(empty_url):
    command = [sys.executable, "-m", "metastore", "db", "version", "--database-url", empty_url]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("METASTORE_")}
    before = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    upgraded = subprocess.run([*command[:4], "upgrade", *command[5:]], check=False, capture_output=True, text=True)
    after = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)

    assert (before.returncode, upgraded.returncode, after.returncode) == (1, 0, 0), upgraded.stderr
    assert "empty" in before.stdout
    assert after.stdout.count(migrate.release_version()) == 2


def test_nobody_migrates_while_another_does(empty_url):
    """The lock is a session's: whoever holds it, others wait."""
    done = []
    with closing(psycopg2.connect(empty_url)) as holder, holder.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [migrate.LOCK])
        other = threading.Thread(target=lambda: done.append(migrate.upgrade(empty_url)))
        other.start()
        other.join(0.5)
        waited = not done
    other.join(120)

    assert waited
    assert done


SHAPE = """
SELECT 'column', table_name, column_name, data_type || coalesce('(' || character_maximum_length || ')', ''),
       is_nullable = 'YES' OR column_default IS NOT NULL OR is_identity = 'YES'
FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'
UNION ALL SELECT 'function', proname, pg_get_function_identity_arguments(oid), pg_get_function_result(oid), true
FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND pg_get_function_result(oid) <> 'trigger'
UNION ALL SELECT 'sequence', relname, '', '', true FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'S'
UNION ALL SELECT 'constraint', conrelid::regclass::text, pg_get_constraintdef(oid), '', true FROM pg_constraint
WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 AND contype <> 'n'
"""
CONTRACTED = {}
"""What a migration takes away or narrows all the same, by its number: things that the release before does not use.

It raises `oldest_release`, so that releases which do use them refuse to start.
"""


def test_each_migration_only_expands(empty_url):
    """Servers of the release before run beside those of this one: what they read and write stays as they know it."""
    from alembic import command

    engine = sqlalchemy.create_engine(sqlalchemy.make_url(empty_url).set(drivername="postgresql+psycopg2"))
    config = Config()
    config.set_main_option("script_location", str(migrate.directory()))
    shapes, oldest = [], []
    with engine.connect() as config.attributes["connection"]:
        for number in range(BASELINE, int(migrate.release_version()) + 1):
            command.upgrade(config, f"{number:04}")
            shapes.append({tuple(row[:4]): row[4] for row in rows(empty_url, SHAPE)})
            oldest += rows(empty_url, "SELECT version FROM oldest_release")
    engine.dispose()

    raised = {f"{number:04}" for number, (before, after) in enumerate(pairwise(oldest), BASELINE + 1) if before != after}
    assert raised == set(CONTRACTED)
    narrowed = {}
    for number, (before, after) in enumerate(pairwise(shapes), BASELINE + 1):
        tables = {name for kind, name, *_ in before if kind == "column"}
        gone = {key for key in before if key not in after}
        required = {key for key, optional in after.items() if not optional and key[1] in tables and before.get(key, True)}
        tightened = {key for key in after if key[0] == "constraint" and key[1] in tables and key not in before}
        narrowed[f"{number:04}"] = {" ".join(key[:3]) for key in gone | required | tightened}
    assert {number: found - CONTRACTED.get(number, set()) for number, found in narrowed.items() if found - CONTRACTED.get(number, set())} == {}
