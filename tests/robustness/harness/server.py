"""``metastore serve`` as histories need it: ``server BUG serve ...``, where BUG is "-" or the name of one to plant.

Its compactions are done by a stand-in for the Spark job, which works on the files of `Deltas`.
"""

import sys

from metastore.cli.main import main
from metastore.loops import job_runner
from tests.robustness.harness.broken_server import BUGS, replace

if __name__ == "__main__":
    replace(job_runner, "JOB_MODULE", "tests.robustness.harness.compact_job")
    replace(job_runner.SubprocessRunner, "unavailable", lambda _runner: None)
    if sys.argv[1] != "-":
        BUGS[sys.argv[1]]()
    main(sys.argv[2:])
