"""The child process of a compaction job: outcome, last words, killed with everything it started."""

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from metastore.compaction.job import CompactionJobResult, CompactionJobSpec
from metastore.compaction.rules.requests import CompactionType
from metastore.config import CompactionSettings
from metastore.loops import job
from metastore.loops.job import SubprocessRunner

SPEC = CompactionJobSpec(
    compaction_id=7, attempt=1, kind="major", catalog="hive", database="d", table="t", partition="", location="/t",
    write_ids="d.t:3:9223372036854775807::", txns="9:9223372036854775807::", txn_id=9, highest_write_id=3,
    properties={"compactor.spark.executor.memory": "3g", "orc.compress": "ZSTD"})


class Scripted(SubprocessRunner):
    """Runs a few lines of Python in the job's place; ``argv[1]`` is what the job would get."""

    script = ""

    def _command(self, spec, work):
        return [sys.executable, "-c", self.script, *super()._command(spec, work)[3:]]


def runner(script, **settings):
    made = Scripted(replace(CompactionSettings(), spark_conf=("spark.a=b=c",), **settings), "thrift://h:1")
    object.__setattr__(made, "script", script)
    return made


def nothing():
    pass


def test_the_spec_and_the_result_survive_the_way():
    result = CompactionJobResult(("base_1",), 5, 4, "app-1")

    assert CompactionJobSpec.from_json(SPEC.to_json()) == SPEC
    assert CompactionJobResult.from_json(result.to_json()) == result


def test_the_job_is_told_everything_and_tells_what_it_did():
    script = ("import json,sys; spec=json.load(open(sys.argv[1])); open(spec['result_path'],'w').write(json.dumps("
              "{'application_id': json.dumps([spec['metastore_uri'], spec['spark_conf']])}))")

    outcome = runner(script).run(SPEC, nothing)

    assert outcome.succeeded
    assert json.loads(outcome.result.application_id) == ["thrift://h:1", {
        "spark.master": "local[2]", "spark.a": "b=c", "spark.executor.memory": "3g"}]


def test_a_failing_jobs_last_words_are_kept():
    outcome = runner("import sys; print('noise'); sys.exit('no space left\\n\\n')").run(SPEC, nothing)

    assert not outcome.succeeded
    assert outcome.message == "The compaction job ended with status 1: no space left"


def test_a_silent_failure():
    assert runner("import os; os._exit(9)").run(SPEC, nothing).message.endswith("status 9: it said nothing")


def test_a_job_that_lost_its_claim_is_killed_with_its_children(monkeypatch, tmp_path):
    monkeypatch.setattr(job, "_POLL_S", 0.05)
    monkeypatch.setattr(job, "_KILL_AFTER_S", 0.5)
    pids = tmp_path / "pids"
    script = ("import os,signal,subprocess,sys,time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
              "c=subprocess.Popen([sys.executable,'-c','import time; time.sleep(60)']);"
              f"open({str(pids)!r},'w').write(f'{{os.getpid()}} {{c.pid}}'); time.sleep(60)")

    def pulse():
        if pids.exists() and pids.read_text():
            raise RuntimeError("claim lost")

    with pytest.raises(RuntimeError, match="claim lost"):
        runner(script).run(SPEC, pulse)

    child, grandchild = map(int, pids.read_text().split())
    for pid in (child, grandchild):
        ends_at = time.monotonic() + 10   # the kernel ends a killed process when it comes to it
        while _runs(pid) and time.monotonic() < ends_at:
            time.sleep(0.01)  # noqa: TID251 - another process is waited for
        assert not _runs(pid)


def _runs(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if not Path(f"/proc/{pid}").exists():
        return False
    status = Path(f"/proc/{pid}/stat").read_text()  # a zombie was killed and waits for whoever inherited it to look
    return status.rpartition(")")[2].split()[0] != "Z"


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "Java" in SubprocessRunner(CompactionSettings()).unavailable()

    monkeypatch.setattr(job, "find_spec", lambda name: None)
    assert "PySpark is not installed" in SubprocessRunner(CompactionSettings()).unavailable()

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(job, "find_spec", lambda name: object())
    assert SubprocessRunner(CompactionSettings()).unavailable() is None


@pytest.mark.parametrize(("kind", "why"), [("minor", None), ("major", None), ("rebalance", "rebalance")])
def test_what_the_job_cannot_do_is_said_before_it_starts(kind, why):
    found = SubprocessRunner(CompactionSettings()).unsupported(CompactionType(kind))

    assert (found is None) if why is None else why in found


@pytest.mark.parametrize(("submit", "certain"), [("local", True), ("spark-submit", False)])
def test_only_a_child_is_dead_for_certain(submit, certain):
    assert SubprocessRunner(replace(CompactionSettings(), submit=submit)).ends_with_us is certain


def test_spark_submit_gets_master_settings_and_the_spec_itself(monkeypatch, tmp_path):
    submit = tmp_path / "spark-submit"
    submit.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('|'.join(sys.argv[1:]))\n")
    submit.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    settings = replace(CompactionSettings(), submit="spark-submit", spark_master="yarn", job_queue="low")
    chosen = SubprocessRunner(settings)

    assert chosen.unavailable() is None
    told = chosen.run(SPEC, nothing).message.partition("status 1: ")[2].split("|")
    assert told[:2] == ["--master", "yarn"]
    assert "spark.yarn.queue=low" in told
    assert CompactionJobSpec.from_json(told[-1]).txn_id == 9
