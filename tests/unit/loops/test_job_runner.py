"""The child process of a compaction job: outcome, last words, killed with everything it started."""

import ctypes
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from metastore.compaction.working.job_specification import (
    CompactionJobResult,
    CompactionJobSpec,
    JobProgress,
    reason,
    telling_line,
)
from metastore.config import CompactionSettings
from metastore.loops import job_process, job_runner
from metastore.loops.job_process import JobLivesError
from metastore.loops.job_runner import SubprocessRunner
from metastore.object_stores import ObjectStores
from tests.support.thrift_server import until

SPEC = CompactionJobSpec(
    compaction_id=7, attempt=1, kind="major", catalog="hive", database="d", table="t", partition="", location="/t",
    write_ids="d.t:3:9223372036854775807::", txns="9:9223372036854775807::", txn_id=9, highest_write_id=3,
    properties={"compactor.spark.executor.memory": "3g", "compactor.spark.jars": "/tmp/evil.jar", "orc.compress": "ZSTD"})


class Scripted(SubprocessRunner):
    """Runs a few lines of Python in the place of what is submitted; ``argv[1]`` is what the job would get."""

    script = ""

    def _command(self, spec):
        return [sys.executable, "-c", self.script, spec.to_json()]


def runner(script, **settings):
    made = Scripted(replace(CompactionSettings(), submit="spark-submit", spark_conf=("spark.a=b=c",), **settings), "thrift://h:1")
    made.script = script
    return made


def nothing(progress=None):
    pass


def test_the_spec_and_the_result_survive_the_way():
    result = CompactionJobResult(("base_1",), 5, 4, "app-1")

    assert CompactionJobSpec.from_json(SPEC.to_json()) == SPEC
    assert CompactionJobResult.from_json(result.to_json()) == result


@pytest.mark.parametrize(("progress", "said"), [
    (JobProgress("app-1"), "0 of 0 stages done, 0 rows taken in"),
    (JobProgress("app-1", "http://d:1", 1, 2, 30, 60), "50 %, 1 of 2 stages done, 30 rows taken in, http://d:1"),
    (JobProgress("app-1", stages=2, stages_done=2, rows=70, rows_expected=60), "99 %, 2 of 2 stages done, 70 rows taken in")])
def test_how_far_a_job_is(progress, said):
    """It is not done before it says so."""
    assert str(JobProgress.from_json(progress.to_json())) == said


def test_what_a_job_says_while_it_works_reaches_its_worker(monkeypatch):
    monkeypatch.setattr(job_process, "_POLL_S", 0.05)
    script = ("import json,os,sys,time; path=json.loads(sys.argv[1])['result_path'];"
              "open(path+'.part','w').write(json.dumps({'application_id': 'app-1'})); os.rename(path+'.part', path+'.progress');"
              "[time.sleep(0.01) for _ in iter(lambda: os.path.exists(path+'.seen'), True)]")
    heard = []

    def pulse(progress=None):
        if progress is not None:
            heard.append(progress)
            Path(paths[0] + ".seen").touch()

    paths = []
    told = runner(script)
    command = told._command
    told._command = lambda spec: paths.append(spec.result_path) or command(spec)

    assert told.run(SPEC, pulse).succeeded
    assert heard[0] == JobProgress("app-1")


def test_the_job_is_told_everything_and_tells_what_it_did():
    script = ("import json,sys; spec=json.loads(sys.argv[1]); open(spec['result_path'],'w').write(json.dumps("
              "{'application_id': json.dumps([spec['metastore_uri'], spec['spark_conf']])}))")

    outcome = runner(script).run(SPEC, nothing)

    assert outcome.succeeded
    assert json.loads(outcome.result.application_id) == ["thrift://h:1", {
        "spark.master": "local[2]", "spark.a": "b=c", "spark.executor.memory": "3g"}]


def test_a_job_has_no_secret_of_ours_in_its_environment(monkeypatch):
    for name, text in {"METASTORE_DATABASE_URL": "postgresql://u:secret@h/d", "PGPASSWORD": "secret", "METASTORE_CONF_X": "secret",
                       "DATABASE_URL": "secret", "AWS_ACCESS_KEY_ID": "key", "HADOOP_CONF_DIR": "/etc/hadoop"}.items():
        monkeypatch.setenv(name, text)
    script = ("import json,os,sys; spec=json.loads(sys.argv[1]); open(spec['result_path'],'w').write(json.dumps("
              "{'application_id': json.dumps(dict(os.environ))}))")

    got = json.loads(runner(script).run(SPEC, nothing).result.application_id)

    assert "secret" not in " ".join(got.values())
    assert (got["AWS_ACCESS_KEY_ID"], got["HADOOP_CONF_DIR"]) == ("key", "/etc/hadoop")
    assert {"PATH", "HOME", "PYSPARK_DRIVER_PYTHON"} <= got.keys()


def test_classes_that_the_operator_allows_are_known_to_the_job():
    script = ("import json,sys; spec=json.loads(sys.argv[1]); open(spec['result_path'],'w').write(json.dumps("
              "{'application_id': spec['spark_conf']['spark.metastore.storage.classes']}))")
    made = Scripted(replace(CompactionSettings(), submit="spark-submit"), storage_classes=[("a.In", "a.Out", "a.SerDe"), ("b", "c", "d")])
    made.script = script
    assert made.run(SPEC, nothing).result.application_id == "a.In:a.Out:a.SerDe,b:c:d"


def test_the_cause_of_a_failure_is_told_and_its_log_kept(tmp_path):
    """Whatever Java logs behind it."""
    trace = ("py4j.protocol.Py4JJavaError: An error occurred while calling o1.save.\n: org.apache.spark.SparkException: Job aborted.\n"
             "\tat org.apache.spark.sql.errors.X$.y(X.scala:850)\nCaused by: java.io.IOException: No space left on device\n"
             "\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)\n\t... 12 more\n"
             "26/11/22 12:00:00 INFO ShutdownHookManager: Shutdown hook called\n\tat java.base/java.lang.Thread.run(Thread.java:840)\n")

    outcome = runner(f"import sys; print({trace!r}); sys.exit(1)", log_dir=str(tmp_path)).run(SPEC, nothing)

    assert not outcome.succeeded
    [log] = tmp_path.glob("failed-compaction-7-*/job.log")
    assert outcome.message == ("The compaction job ended with status 1: java.io.IOException: No space left on device "
                               f"(its log: {log})")
    assert "ShutdownHookManager" in log.read_text()
    assert log.parent.stat().st_mode & 0o777 == 0o700


def test_what_the_job_says_of_its_error_goes_first(tmp_path):
    script = ("import json,sys; spec=json.loads(sys.argv[1]); open(spec['result_path'],'w').write(json.dumps("
              "{'error': 'the table is gone'})); print('java.lang.Error: noise'); sys.exit(1)")

    message = runner(script, log_dir=str(tmp_path)).run(SPEC, nothing).message

    assert message.startswith("The compaction job ended with status 1: the table is gone (its log: ")


def test_logs_of_the_last_failures_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(job_runner, "KEPT_LOGS", 2)
    failing = runner("import sys; sys.exit(3)", log_dir=str(tmp_path))

    messages = [failing.run(SPEC, nothing).message for _ in range(3)]

    assert sorted(str(one / "job.log") for one in tmp_path.iterdir()) == sorted(
        one.partition("its log: ")[2].rstrip(")") for one in messages[1:])


def test_a_log_that_cannot_be_kept(tmp_path):
    message = runner("import sys; sys.exit(3)", log_dir=str(tmp_path / "none")).run(SPEC, nothing).message

    assert "status 3: it said nothing (its log could not be kept: " in message


@pytest.mark.parametrize(("said", "told"), [
    ([], ""), (["a", "b"], "b"), (["java.lang.OutOfMemoryError: Java heap space", "bye"], "java.lang.OutOfMemoryError: Java heap space"),
    (["x.AError: 1", "Caused by: x.BException: 2", "Caused by: x.CException: 3", "x.DError: 4"], "x.CException: 3"),
    (["at a.b(c.java:1)", "... 3 more"], "")])
def test_the_telling_line(said, told):
    assert telling_line(said) == told


def test_the_reason_of_an_error():
    java = ": java.io.IOException: full\n\tat a.b(C.java:1)"

    assert reason(ValueError("an answer")) == "ValueError: an answer"
    assert reason(RuntimeError(f"calling o1.save.\n{java}\nCaused by: a.BException: disk")) == (
        "RuntimeError: calling o1.save. a.BException: disk")
    assert reason(RuntimeError(f"calling z:a.B.\n{java}")) == "RuntimeError: calling z:a.B. java.io.IOException: full"


def test_a_silent_failure(tmp_path):
    said = runner("import os; os._exit(9)", log_dir=str(tmp_path)).run(SPEC, nothing).message
    assert "ended with status 9: it said nothing (" in said


def test_a_job_ends_with_its_server(tmp_path):
    """The server is killed, not asked: the job and what it started are gone, of which the end of a pipe tells."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    holding = ("import subprocess,sys; held=open(sys.argv[1],'w'); held.write('up'); held.flush();"
               "subprocess.run([sys.executable,'-c','import time; time.sleep(600)'], pass_fds=[held.fileno()])")
    server = subprocess.Popen([sys.executable, "-c", (
        "import sys\nfrom tests.unit.loops.test_job_runner import SPEC, Scripted, nothing\n"
        "from metastore.config import CompactionSettings\n"
        "class Holding(Scripted):\n"
        f"    def _command(self, spec): return [sys.executable, '-c', {holding!r}, {str(pipe)!r}]\n"
        "Holding(CompactionSettings(submit='spark-submit'), '').run(SPEC, nothing)")])
    with pipe.open() as told:
        assert told.read(2) == "up"
        server.kill()
        server.wait()
        assert told.read() == ""  # everybody who had it open for writing is gone


def test_a_job_that_lost_its_claim_is_killed_with_its_children(monkeypatch, tmp_path):
    monkeypatch.setattr(job_process, "_POLL_S", 0.05)
    monkeypatch.setattr(job_process, "_KILL_AFTER_S", 0.5)
    pids = tmp_path / "pids"
    script = ("import os,signal,subprocess,sys,time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
              "c=subprocess.Popen([sys.executable,'-c','import time; time.sleep(60)']);"
              f"written=open({str(pids)!r}+'.part','w'); written.write(f'{{os.getpid()}} {{c.pid}}'); written.close();"
              f"os.rename(written.name, {str(pids)!r}); time.sleep(60)")

    def pulse(progress=None):
        if pids.exists():
            raise RuntimeError("claim lost")

    with pytest.raises(RuntimeError, match="claim lost"):
        runner(script).run(SPEC, pulse)

    child, grandchild = map(int, pids.read_text().split())
    until(lambda: not _runs(child) and not _runs(grandchild))  # the kernel ends a killed process when it comes to it


def _runs(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text()  # a zombie was killed and waits for whoever inherited it to look
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "Java" in SubprocessRunner(CompactionSettings()).unavailable()

    monkeypatch.setattr(job_runner, "find_spec", lambda name: None)
    assert "PySpark is not installed" in SubprocessRunner(CompactionSettings()).unavailable()

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(job_runner, "find_spec", lambda name: object())
    assert SubprocessRunner(CompactionSettings()).unavailable() is None


def test_a_job_that_survives_its_killing_is_told_of(monkeypatch):
    monkeypatch.setattr(job_process, "_POLL_S", 0.05)
    monkeypatch.setattr(job_process, "_group_lives", lambda group, seconds: True)

    def pulse(progress=None):
        raise RuntimeError("claim lost")

    with pytest.raises(JobLivesError, match="is still there"):
        runner("import time; time.sleep(60)").run(SPEC, pulse)


@pytest.fixture
def first_process():
    """Adopt processes whose parents die, as the first process of a container does; prctl(PR_SET_CHILD_SUBREAPER)."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(36, 1, 0, 0, 0) == 0
    yield
    libc.prctl(36, 0, 0, 0, 0)


@pytest.mark.usefixtures("first_process")
@pytest.mark.parametrize("ending", ["", "import time; time.sleep(60)"], ids=["done", "killed"])
def test_what_a_job_leaves_to_the_first_process_of_a_container_is_buried(monkeypatch, tmp_path, ending):
    """As a JVM does, whose driver ends before it."""
    monkeypatch.setattr(job_process, "_POLL_S", 0.05)
    left = tmp_path / "left"
    script = ("import os, sys, time\n"
              "if os.fork() == 0:\n"
              f"    with open({str(left)!r} + '.part', 'w') as f: f.write(str(os.getpid()))\n"
              f"    os.rename({str(left)!r} + '.part', {str(left)!r}); time.sleep(0.2); os._exit(0)\n"
              f"while not os.path.exists({str(left)!r}): time.sleep(0.01)\n" + ending)

    def pulse(progress=None):
        if ending and left.exists():
            raise RuntimeError("claim lost")

    if ending:
        with pytest.raises(RuntimeError, match="claim lost"):
            runner(script).run(SPEC, pulse)
    else:
        runner(script).run(SPEC, pulse)

    with pytest.raises(ProcessLookupError):
        os.kill(int(left.read_text()), 0)


def test_a_driver_in_the_cluster_is_refused():
    settings = replace(CompactionSettings(), submit="spark-submit", spark_conf=("spark.submit.deployMode=cluster",))

    assert "would outlive its Worker" in SubprocessRunner(settings).unavailable()


def test_spark_submit_gets_master_settings_and_the_spec_itself(monkeypatch, tmp_path):
    submit = tmp_path / "spark-submit"
    submit.write_text(f"#!{sys.executable}\nimport os, sys\nsys.exit('|'.join([os.environ['SPARK_SUBMIT_OPTS'], *sys.argv[1:], open(sys.argv[-1]).read()]))\n")
    submit.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Da=b")
    settings = replace(CompactionSettings(), submit="spark-submit", spark_master="yarn", job_queue="low",
                       log_dir=str(tmp_path))
    chosen = SubprocessRunner(settings, stores=ObjectStores({"fs.s3a.secret.key": "hush", "hadoop.security.credential.x": "y"}))

    assert chosen.unavailable() is None
    told = chosen.run(SPEC, nothing).message.partition("status 1: ")[2].rpartition(" (its log: ")[0].split("|")
    assert told[0] == "-Da=b -Duser.timezone=UTC", "its driver has a JVM before the job can say anything"
    assert told[1:5] == ["--master", "yarn", "--deploy-mode", "client"]
    assert "spark.yarn.queue=low" in told
    assert CompactionJobSpec.from_json(told[-1]).txn_id == 9
    assert CompactionJobSpec.from_json(told[-1]).hadoop_conf == {"fs.s3a.secret.key": "hush"}
    assert "hush" not in "".join(told[:-1]), "anybody on the machine sees a command line"
