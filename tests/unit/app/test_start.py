"""A start loads what it uses, and no more."""

import subprocess
import sys
from textwrap import dedent

SERVER = "import metastore.__main__, metastore.cli.main, metastore.cli.serve, metastore.app"
NOT_AT_A_START = ["alembic", "sqlalchemy", "cryptography", "fsspec", "pygments", "attr", "pyarrow", "numpy", "pandas", "sqlglot", "pyspark",
                  "psycopg2.extras", "metastore.client.txn_manager", "metastore.spark", "metastore.planner", "metastore.acid_tables"]


def told(program):
    done = subprocess.run([sys.executable, "-c", dedent(program)], check=True, capture_output=True, text=True, timeout=120)
    return done.stdout.strip()


def test_the_server_loads_nothing_that_it_does_not_use():
    """Also of what is installed besides: structlog takes rich where it is."""
    loaded = told(f"""
        {SERVER}
        import sys
        print([name for name in {NOT_AT_A_START!r} if sys.modules.get(name)], "metastore.thrift_server" in sys.modules)
    """)
    assert loaded == "[] True"


def test_most_of_the_interface_is_never_made():
    """A class of Thrift takes four kilobytes and a tenth of a millisecond, and there are a thousand."""
    made, known = map(int, told(f"""
        {SERVER}
        import sys
        modules = [module for name, module in sys.modules.items() if name.startswith("metastore.thrift_gen.")]
        print(sum(isinstance(value, type) for module in modules for value in vars(module).values()))
        print(len({{name for module in modules for name in dir(module)}}))
    """).split())
    assert known > 950
    assert made < known / 8


def test_the_garbage_collector_is_as_it_was_once_a_service_runs(monkeypatch):
    import gc

    from metastore.cli import lifecycle

    before = gc.get_threshold()
    try:
        gc.set_threshold(100_000)
        lifecycle.collect_as_usual()
        assert gc.get_threshold() == tuple(map(int, told("import gc; print(*gc.get_threshold())").split()))
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
