import os
import subprocess
import sys

import pytest

from metastore.db.failpoints import Failpoints
from metastore.errors import InvalidInputError, UnavailableError

WRITE_TWICE = """
import sys
from metastore.db.engine import Database
database = Database(sys.argv[1])
for n in (1, 2):
    with database.begin() as pg:
        pg.sql("INSERT INTO notes VALUES (%s)", [n])
"""


@pytest.mark.parametrize(("point", "saved"), [("pg.before_commit=kill@2", [1]), ("pg.after_commit=kill@2", [1, 2])])
def test_a_process_dies_at_the_named_point(database, point, saved):
    database.once("CREATE TABLE notes (n int)")

    died = subprocess.run([sys.executable, "-c", WRITE_TWICE, database.url], check=False,
                          env={**os.environ, "METASTORE_FAILPOINTS": point})

    assert died.returncode == -9
    assert [n for (n,) in database.once("SELECT n FROM notes ORDER BY n")] == saved


def test_an_armed_point_acts_once():
    points = Failpoints("here=error@2")
    points.hit("elsewhere")
    points.hit("here")
    with pytest.raises(UnavailableError):
        points.hit("here")
    points.hit("here")


@pytest.mark.parametrize("text", ["here", "here=explode", "here=kill@soon"])
def test_a_misspelt_point_stops_the_start(text):
    with pytest.raises(InvalidInputError, match="NAME=ACTION"):
        Failpoints(text)
