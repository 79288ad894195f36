"""The machine can fail: it finds what is broken on purpose, and leaves a short script that shows it."""

import pytest

from tests.model.machine import tell_stories
from tests.support.model import Model
from tests.support.model.locks import EXCL_WRITE
from tests.support.model.write_ids import Reader
from tests.support.scripts import play


class LastCommitterWins(Model):
    def _refuse_second_committer(self, *args, **kwargs):
        pass


class ExclusiveWritesShare(Model):
    @staticmethod
    def _waits(asking, there):
        return Model._waits(asking, there) and {asking.kind, there.kind} != {EXCL_WRITE}


class ForgetsTheTimeout(Model):
    timeout_ms = 600_000


class MarkIsTooHigh(Model):
    """As if an id were given out before it is seen: whoever asks meanwhile takes it for committed."""

    def get_open_txns_req(self, request):
        answer = super().get_open_txns_req(request)
        if answer.open_txns and answer.open_txns[-1] == answer.txn_high_water_mark and not answer.abortedBits:
            answer.open_txns.pop()
        return answer


class SeesNoCommits(Model):
    def get_open_txns_req(self, request):
        answer = super().get_open_txns_req(request)
        answer.open_txns, answer.abortedBits = list(range(1, answer.txn_high_water_mark + 1)), b""
        return answer


class ShowsOpenWrites(Model):
    def _reader(self, request):
        return Reader(super()._reader(request).mark)


@pytest.mark.parametrize("broken", [LastCommitterWins, ExclusiveWritesShare, ForgetsTheTimeout, MarkIsTooHigh])
def test_a_difference_is_found_and_left_as_a_script(broken, tmp_path):
    found = tmp_path / "story"

    with pytest.raises(AssertionError, match="The story as it should be"):
        tell_stories(broken, found=found, max_examples=1000, derandomize=True)

    story = found.read_text(encoding="utf-8")
    assert play(story, Model()) == story
    assert play(story, broken()) != story
    assert len(story.partition("\ntxns\n")[0].splitlines()) < 9


@pytest.mark.parametrize(("broken", "violated"), [
    (SeesNoCommits, "(a)"), (MarkIsTooHigh, "(b)"), (LastCommitterWins, "(c)"), (ShowsOpenWrites, "(d)")])
def test_the_properties_need_no_model(broken, violated, tmp_path):
    """Both worlds have the same bug, so that they never differ."""
    with pytest.raises(AssertionError) as failed:
        tell_stories(broken, broken, found=tmp_path / "story", max_examples=1000, derandomize=True)

    assert str(failed.value).startswith(violated)
