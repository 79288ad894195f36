#!/usr/bin/env bash
# The ACID tests on each of these Sparks. Each lies in an environment of its own, which sees .venv's packages behind its own.
set -euo pipefail
cd "$(dirname "$0")/.."
lenient=(-W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning)  # older PySparks leave sockets open
failed=()
for version in ${SPARKS:-4.1 4.2 4.3}; do
  place=.data/spark-versions/$version
  if [ ! -e "$place/.made" ]; then
    rm -rf "$place"
    .venv/bin/python -m venv "$place"
    "$place/bin/python" - "$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" <<'PY'
import pathlib, sys, sysconfig
pathlib.Path(sysconfig.get_path("purelib"), "project.pth").write_text(f"import site; site.addsitedir({sys.argv[1]!r})\n")
PY
    PIP_CONSTRAINT="" "$place/bin/python" -m pip install --quiet --disable-pip-version-check --ignore-installed "pyspark==$version.*"
    touch "$place/.made"
  fi
  echo "Spark $version: $("$place/bin/python" -c 'import pyspark; print(pyspark.__version__, pyspark.__file__)')"
  tests=${TESTS:-tests/unit/spark tests/acceptance/spark_session tests/acceptance/compaction}
  # The catalog needs the transactions for statements that Spark has since 4.2.
  if [ -z "${TESTS:-}" ] && [ "$(printf '%s\n' 4.2 "$version" | sort -V | head -1)" = 4.2 ]; then tests+=" tests/acceptance/spark_catalog"; fi
  # shellcheck disable=SC2086 - several places
  env -u SPARK_HOME PATH="$PWD/$place/bin:$PATH" "$place/bin/python" -m pytest -n0 "${lenient[@]}" $tests "$@" || failed+=("$version")
done
[ ${#failed[@]} -eq 0 ] || { echo "Not on Spark ${failed[*]}"; exit 1; }
