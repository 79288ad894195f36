"""Our answers to recorded calls, beside what Hive's metastores 2.3.10 and 4.0.1 answered: each difference is on the page."""

import re
from pathlib import Path

from tests.differential import metastores, recording
from tests.differential.known import KNOWN, judged
from tests.differential.run import Run

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "differences.md"


def test_every_difference_is_known_by_name(database_url, tmp_path):
    with metastores.ours(tmp_path / "ours", database_url) as asked:
        run = Run([asked])
        run.again(recording.read())
    unknown, names = judged(run.found)
    assert not unknown, "\n".join(f"{found.text}   ({found.where}) {found.why}" for found in unknown[:40])
    assert [known.name for known in KNOWN if known.is_recorded and known.name not in names] == []  # what is gone leaves the page
    assert run.asked > 3000


def test_the_page_names_what_is_known():
    """A row of the page is a name of the table, and the other way round."""
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(each.name for each in KNOWN)
