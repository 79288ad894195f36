"""Processes that do one job after another: which are kept, which are ended, and that they end with their server.

A few lines of Python stand for the process with Spark: what a job's file says is done with it.
"""

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread

import pytest

from metastore.loops import job_process
from metastore.loops.warm_sparks import IdleReport, WarmSparks
from tests.support.thrift_server import until

SCRIPT = """
import os, pathlib, sys
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)
print("started", flush=True)
for line in sys.stdin:
    code = {}
    exec(pathlib.Path(line.strip()).read_text(), code)
    print(code.get("status", 0), file=answers)
"""
FOREVER = timedelta(hours=1)
CONF = {"spark.master": "local[2]"}


def nothing():
    pass


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(job_process, "_POLL_S", 0.05)


class Jobs:
    """Sparks and what they are told; ``pids``: of the processes that have done them, in turn."""

    def __init__(self, folder: Path, **settings) -> None:
        self.folder, self.log, self.count = folder, folder / "job.log", 0
        self.sparks = WarmSparks(**{"command": [sys.executable, "-c", SCRIPT], "environment": {}, "idle": FOREVER,
                                    "most_jobs": 100, **settings})

    def spec(self, does="") -> Path:
        self.count += 1
        path = self.folder / f"{self.count}.py"
        path.write_text(f"import os; open({str(self.folder / 'pids')!r}, 'a').write(f'{{os.getpid()}} ')\n{does}")
        return path

    def run(self, does="", conf=CONF, pulse=nothing) -> int:
        return self.sparks.run(conf, self.spec(does), self.log, pulse)

    @property
    def pids(self) -> list[int]:
        path = self.folder / "pids"
        return [int(word) for word in path.read_text().split()] if path.exists() else []


@pytest.fixture
def new_jobs(tmp_path):
    made = []

    def new(**settings):
        made.append(Jobs(tmp_path, **settings))
        return made[-1]

    yield new
    for jobs in made:
        jobs.sparks.close()


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_one_process_does_one_job_after_another(new_jobs):
    jobs = new_jobs()

    assert [jobs.run(), jobs.run(), jobs.run()] == [0, 0, 0]
    assert len(set(jobs.pids)) == 1
    assert lives(jobs.pids[0])


def test_a_job_that_fails_ends_its_process_and_no_other(new_jobs):
    jobs = new_jobs()
    jobs.run("print('of an earlier job', flush=True)")

    assert jobs.run("print('no space left', flush=True); status = 3") == 3
    assert jobs.log.read_text() == "no space left\n", "what it said before is not of this job"
    assert not lives(jobs.pids[1])
    assert jobs.run() == 0
    first, second, third = jobs.pids
    assert first == second != third


@pytest.mark.parametrize(("does", "status"), [("os._exit(9)", 9), ("os.kill(os.getpid(), 9)", 137)])
def test_a_process_that_dies_has_failed_its_job(new_jobs, does, status):
    jobs = new_jobs()

    assert jobs.run(f"print('bye', flush=True); {does}") == status
    assert jobs.log.read_text() == "started\nbye\n"
    assert jobs.run() == 0


def test_a_process_that_dies_between_jobs_fails_none(new_jobs):
    jobs = new_jobs()
    jobs.run()
    os.kill(jobs.pids[0], signal.SIGKILL)
    until(lambda: not jobs.sparks._waiting[0].process.lives)

    assert jobs.run() == 0
    assert jobs.pids[0] != jobs.pids[1]


def test_a_job_that_is_given_up_is_dead_with_all_that_it_started(new_jobs):
    jobs = new_jobs()
    child = jobs.folder / "child"
    jobs.run()

    def lost():
        if child.exists():
            raise RuntimeError("claim lost")

    with pytest.raises(RuntimeError, match="claim lost"):
        jobs.run(f"import subprocess, sys, time; c = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
                 f"open({str(child)!r} + '.part', 'w').write(str(c.pid)); os.rename({str(child)!r} + '.part', {str(child)!r}); time.sleep(60)",
                 pulse=lost)

    assert not lives(jobs.pids[1])
    assert not lives(int(child.read_text()))
    assert jobs.run() == 0


def test_without_its_guard_a_job_does_not_go_on(new_jobs):
    """Nothing would end it with its server."""
    jobs = new_jobs()

    assert jobs.run("import time; os.kill(os.getppid(), 9); time.sleep(60)") == -signal.SIGKILL
    assert not lives(jobs.pids[0])


def test_other_settings_need_another_process_which_takes_the_place_of_one_that_waits(new_jobs):
    jobs = new_jobs()
    jobs.run()
    jobs.run(conf={**CONF, "spark.executor.memory": "3g"})

    assert not lives(jobs.pids[0])
    assert lives(jobs.pids[1])


def test_jobs_at_the_same_time_have_processes_of_their_own(new_jobs):
    jobs, begun, go_on = new_jobs(), Event(), Event()
    fifo = jobs.folder / "fifo"
    os.mkfifo(fifo)
    spec = jobs.spec(f"open({str(fifo)!r}).read()")
    codes = []

    def wait():
        codes.append(jobs.sparks.run(CONF, spec, jobs.log, begun.set))
        go_on.set()

    Thread(target=wait).start()
    assert begun.wait(60)
    assert jobs.run() == 0
    fifo.open("w").close()
    assert go_on.wait(60)
    assert codes == [0]
    assert len(set(jobs.pids)) == 2
    assert jobs.sparks.end_idle() == IdleReport(kept=2, ended=0)


def test_after_many_jobs_a_process_is_renewed(new_jobs):
    jobs = new_jobs(most_jobs=2)
    for _ in range(3):
        jobs.run()
    first, second, third = jobs.pids

    assert first == second != third
    assert not lives(first)


def test_a_process_waits_for_its_next_job_only_for_a_while(new_jobs):
    jobs = new_jobs(idle=timedelta(microseconds=1))
    jobs.run()
    assert lives(jobs.pids[0])

    assert jobs.sparks.end_idle() == IdleReport(kept=0, ended=1)
    assert not lives(jobs.pids[0])


def test_none_is_kept_where_nobody_wants_that(new_jobs):
    jobs = new_jobs(idle=timedelta(0))
    jobs.run()

    assert not lives(jobs.pids[0])


def test_none_is_kept_by_who_stops(new_jobs):
    jobs = new_jobs()
    jobs.run()
    spec = jobs.spec()
    jobs.sparks.close()
    assert not lives(jobs.pids[0])

    assert jobs.sparks.run(CONF, spec, jobs.log, nothing) == 0
    assert not lives(jobs.pids[1])


@pytest.mark.parametrize("does", ["", "import time; time.sleep(600)"], ids=["waits for a job", "works"])
def test_a_process_ends_with_its_server(tmp_path, does):
    """Which is killed, not asked: of the end of a pipe, which the process inherits, everybody hears."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "job.py").write_text(f"import os; held = os.open({str(pipe)!r}, os.O_WRONLY); os.write(held, b'up'); os.set_inheritable(held, True)\n"
                                     f"import sys; sys.held = held\n{does}")
    server = subprocess.Popen([sys.executable, "-c", (
        "import sys, time\nfrom pathlib import Path\nfrom tests.unit.loops.test_warm_sparks import CONF, FOREVER, SCRIPT, nothing\n"
        "from metastore.loops.warm_sparks import WarmSparks\n"
        f"WarmSparks([sys.executable, '-c', SCRIPT], {{}}, FOREVER, 100).run(CONF, Path({str(tmp_path / 'job.py')!r}), "
        f"Path({str(tmp_path / 'log')!r}), nothing)\ntime.sleep(600)")])
    with pipe.open() as told:
        assert told.read(2) == "up"
        server.kill()
        server.wait()
        assert told.read() == ""  # everybody who had it open for writing is gone
