"""A guard that runs a command which must not outlive its starter: ``python -m metastore.loops.job_guard COMMAND``.

Rule: the starter holds the other end of our standard input, and its bytes go to the command. When the pipe breaks,
however the starter died, every process in our group is killed at once: the command, its children, and the guard. The
command handles SIGTERM itself.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread
from typing import IO

_LINE = 4096
"""At most so much is under way: a pipe takes it at once, also to a command that reads nothing."""


def main(command: Sequence[str]) -> int:
    """Run the command in our process group; return its exit status, or 128 and the signal that ended it."""
    signal.signal(signal.SIGTERM, lambda *_: None)  # The command does not inherit a handler, unlike SIG_IGN.
    with subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0) as child:  # noqa: S603 - our own command, no shell
        Thread(target=_end_with_asker, args=[child.stdin], daemon=True).start()
        code = child.wait()
    return code if code >= 0 else 128 - code


def _end_with_asker(commands_input: IO[bytes]) -> None:
    while said := os.read(0, _LINE):
        with suppress(OSError):  # The command has ended, and its status tells how.
            commands_input.write(said)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
