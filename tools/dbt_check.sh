#!/usr/bin/env bash
# dbt with its adapter for Spark, in an environment of its own that sees .venv's packages (pyspark among them) behind its own.
set -euo pipefail
cd "$(dirname "$0")/.."
place=.data/interop/dbt/python
wanted=$(sha256sum tools/dbt_check.sh)
if [ "$(cat "$place/.made" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$place"
  .venv/bin/python -m venv "$place"
  "$place/bin/python" - "$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" <<'PY'
import pathlib, sys, sysconfig
pathlib.Path(sysconfig.get_path("purelib"), "project.pth").write_text(f"import site; site.addsitedir({sys.argv[1]!r})\n")
PY
  PIP_CONSTRAINT="" "$place/bin/python" -m pip install --quiet --disable-pip-version-check 'dbt-core>=1.10,<1.11' 'dbt-spark>=1.10,<1.12'
  printf '%s' "$wanted" >"$place/.made"
fi
"$place/bin/python" -m pytest -n0 tests/interop/dbt/projects.py "$@"
