"""A planner that is killed at a call: python -m ... CALL before|after OPTIONS, the last as of ``metastore planner``."""

import os
import signal
import sys

from metastore.cli.main import main
from metastore.planner import calls


def dies_at(name, when):
    answer = calls.CALLS[name].answer

    def dying(call):
        if when == "after":
            answer(call)
        os.kill(os.getpid(), signal.SIGKILL)

    calls.CALLS[name] = calls.CALLS[name]._replace(answer=dying)


if __name__ == "__main__":
    dies_at(*sys.argv[1:3])
    sys.argv[1:] = ["planner", *sys.argv[3:]]
    main()
