"""What PostgreSQL says of a table's properties is what the rule says."""

import json

from hypothesis import given
from hypothesis import strategies as st

from metastore.acid.table_kinds import is_transactional

WORDS = st.sampled_from(["true", "TRUE", "tRue", "false", "", " true", "true ", "default", "insert_only", "\u0130", "1"])
PARAMETERS = st.dictionaries(st.sampled_from(["transactional", "TRANSACTIONAL", "transactional_properties"]), WORDS)


def test_sql_and_python_agree(database):
    @given(st.lists(PARAMETERS, min_size=20, max_size=60))
    def agree(several):
        with database.begin() as pg:
            rows = pg.sql("SELECT is_transactional(p::jsonb) FROM unnest(%s::text[]) WITH ORDINALITY AS u (p, n) ORDER BY n",
                          ([json.dumps(one) for one in several],))

        assert [found for (found,) in rows] == [is_transactional(one) for one in several]

    agree()
