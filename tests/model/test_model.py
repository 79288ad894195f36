"""Server and model agree on random stories, and the snapshots of every step hold.

``MODEL_EXAMPLES`` says how many stories are told; ``make model`` tells many.
"""

import os

import pytest

from tests.model.machine import tell_stories


@pytest.mark.timeout(7200)
def test_a_server_answers_as_the_model_does(worlds):
    tell_stories(lambda: worlds({}), max_examples=int(os.environ.get("MODEL_EXAMPLES", "60")))
