"""The how-to page's programs run as they stand there, but for the address."""

import re
from pathlib import Path

from tests.support.acid.creating import create_table, snapshot
from tests.support.acid.plain_reading import rows

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "stream-without-spark.md"


def test_the_programs_of_the_page(client, server, monkeypatch):
    monkeypatch.setattr("tests.support.acid.creating.DATABASE", "web")
    client.create_database(client.types.Database(name="web", description="", locationUri=None, parameters={}))
    place = Path(create_table(client, "clicks", {"id": "bigint", "page": "string", "at": "timestamp"}, keys={"day": "date"}))
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(programs) == 1
    for program in programs:
        exec(compile(program.replace("thrift://localhost:9083", server.thrift_uri), str(PAGE), "exec"), {})

    seen = snapshot(client, "clicks")
    found = {day: sorted(row[:2] for row in rows(place / f"day=2024-05-0{day}", seen).values()) for day in (1, 2)}
    assert found == {1: [(1, "/")], 2: [(2, "/help"), (3, "/")]}
