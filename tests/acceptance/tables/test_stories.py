"""Random stories about tables, beside a plain list. A short one here; ``make robustness-tables SEEDS=1-50`` tells many."""

import os

import pytest

from tests.acceptance.tables.story import Story

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

CHOSEN = os.environ.get("TABLE_SEEDS", "")


def seeds():
    first, _, last = (CHOSEN or "3").partition("-")
    return range(int(first), int(last or first) + 1)


@pytest.mark.parametrize("seed", seeds())
def test_the_table_shows_the_list(seed, acid_session, db, compacting):
    story = Story(seed, acid_session, db, compacting)
    story.tell(30 if CHOSEN else 6)
    print(f"seed {seed}: {dict(story.counts)}")
