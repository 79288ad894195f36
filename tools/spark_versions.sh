#!/usr/bin/env bash
# The ACID tests on each of these Sparks. Each lies in an environment of its own, which sees .venv's packages behind its own,
# with what Spark Connect's client needs.
set -euo pipefail
cd "$(dirname "$0")/.."
lenient=(-W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning)  # older PySparks leave sockets open
failed=()
for version in ${SPARKS:-4.0 4.1 4.2 4.3}; do
  place=.data/spark-versions/$version
  if [ ! -e "$place/.made-with-connect" ]; then
    rm -rf "$place"
    .venv/bin/python -m venv "$place"
    "$place/bin/python" - "$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" <<'PY'
import pathlib, sys, sysconfig
pathlib.Path(sysconfig.get_path("purelib"), "project.pth").write_text(f"import site; site.addsitedir({sys.argv[1]!r})\n")
PY
    PIP_CONSTRAINT="" "$place/bin/python" -m pip install --quiet --disable-pip-version-check --ignore-installed "pyspark==$version.*" grpcio grpcio-status googleapis-common-protos
    touch "$place/.made-with-connect"
  fi
  echo "Spark $version: $("$place/bin/python" -c 'import pyspark; print(pyspark.__version__, pyspark.__file__)')"
  # acid(spark) needs 4.1; the catalog is there from 4.0 on.
  if [ "$version" = 4.0 ]; then whole="tests/unit/spark/test_java.py"; else whole="tests/unit/spark tests/acceptance/spark_session tests/acceptance/compaction"; fi
  tests=${TESTS:-$whole tests/acceptance/spark_catalog tests/interop/spark_clients/clients.py}
  # shellcheck disable=SC2086 - several places
  env -u SPARK_HOME PATH="$PWD/$place/bin:$PATH" "$place/bin/python" -m pytest -n0 "${lenient[@]}" $tests "$@" || failed+=("$version")
done
[ ${#failed[@]} -eq 0 ] || { echo "Not on Spark ${failed[*]}"; exit 1; }
