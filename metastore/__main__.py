"""``python -m metastore`` and the ``metastore`` command."""

import os
import signal
import sys


def main() -> None:
    """Run the command line. A signal while it is being loaded ends ``serve`` in order: there is nothing yet."""
    if sys.argv[1:2] == ["serve"]:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: os._exit(0))

    from metastore.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
