"""The entry point of ``python -m metastore`` and of the ``metastore`` command."""

import gc
import os
import signal
import sys

# Objects made at the start stay: looking through them again and again is a tenth of the start.
gc.set_threshold(100_000)
# structlog imports rich if it is installed, and rich pygments: 0.15 s for tracebacks that we print plain.
sys.modules.setdefault("rich", None)  # type: ignore[arg-type]


def main() -> None:
    """Run the command line. A signal during the import ends ``serve`` in order: nothing has begun yet."""
    if sys.argv[1:2] == ["serve"]:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: os._exit(0))

    from metastore.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
