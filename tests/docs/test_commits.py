"""Commit subjects are checked by `make lint`, where git knows the commits."""

import subprocess

import pytest

from tests.docs import commits


@pytest.mark.parametrize("subject", ["Bound notices of a connection", "Fix lost NULL structs in UPDATE", "Reword docstrings of places", "Bring rows back",
                                     "Speed up DROP", 'Revert "Bound notices"', "Say " + "x" * 68, "Say \\\"\"\" as Python does"])
def test_a_subject_in_the_imperative_passes(subject):
    assert commits.wrong([subject]) == []


@pytest.mark.parametrize(("subject", "what"), [
    ("Say " + "x" * 69, "is longer"), ("bound notices", "does not begin with a capital"), ("Bound notices.", "ends with a full stop"),
    ("Added a check", "imperative"), ("Adds a check", "imperative"), ("Adding a check", "imperative"), ("Reworded docstrings", "imperative"), ("The check is added", "imperative"),
    ("Performance: a check", "imperative"), ("Hive's check is ours", "imperative"), ("", "imperative")])
def test_another_is_told_what_is_wrong(subject, what):
    assert [one for one in commits.wrong(["Bound notices", subject]) if what in one and one.startswith(repr(subject))] != []


@pytest.fixture
def repository(tmp_path, monkeypatch):
    def git(*words):
        return subprocess.run(["git", "-c", "user.name=T", "-c", "user.email=t@t", *words], cwd=tmp_path / "there", capture_output=True, text=True, check=True).stdout.strip()

    (tmp_path / "there").mkdir()
    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "what was before the first is not looked at.")
    monkeypatch.setattr(commits, "FIRST", git("rev-parse", "HEAD"))
    return git


def test_commits_after_the_first_are_checked_merges_aside(repository, tmp_path, capsys):
    repository("switch", "-q", "-c", "side")
    repository("commit", "-q", "--allow-empty", "-m", "Bound notices", "-m", "they grew.")
    repository("switch", "-q", "main")
    repository("merge", "-q", "--no-ff", "-m", "merge of a side.", "side")
    assert (commits.main(tmp_path / "there"), capsys.readouterr().out) == (0, "")

    repository("commit", "-q", "--allow-empty", "-m", "Bounded notices")
    assert commits.main(tmp_path / "there") == 1
    assert capsys.readouterr().out == ("Commit subject 'Bounded notices' does not begin with a verb in the imperative: "
                                       "see CONTRIBUTING.md, Rules that the tools check\n")


def test_a_checkout_that_does_not_know_the_first_commit_is_not_checked(repository, tmp_path, capsys):
    repository("commit", "-q", "--allow-empty", "-m", "bounded notices.")
    repository("clone", "-q", "--depth", "1", (tmp_path / "there").as_uri(), str(tmp_path / "shallow"))
    for where in (tmp_path / "shallow", tmp_path):
        assert commits.main(where) == 0
        assert "are not checked" in capsys.readouterr().out
