"""``python -m metastore`` and the ``metastore`` command."""

from metastore.cli.main import main

if __name__ == "__main__":
    main()
