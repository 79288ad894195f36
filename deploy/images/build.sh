#!/usr/bin/env bash
# Put the service with what it needs into a virtual environment: the one build step of both images, and of machines
# without containers.
#   build.sh SOURCE TARGET server|worker
# Versions are those of deploy/images/constraints.txt. Nothing of the build stays: no compiler, no cache, no tests of libraries.
set -euo pipefail
source=$1 target=$2 kind=$3
case $kind in
  server) extras=server,s3,gcs,azure unused="pyarrow numpy sqlglot rich markdown-it-py mdurl Pygments" ;;
  worker) extras=server,spark,s3,gcs,azure unused="" ;;
  *) echo "build.sh: $kind is neither server nor worker" >&2; exit 2 ;;
esac
"${PYTHON:-python3}" -m venv "$target"
"$target/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check -c "$source/deploy/images/constraints.txt" "$source[$extras]"
# The server touches no rows: what does that is three times its size.
# shellcheck disable=SC2086
[ -z "$unused" ] || "$target/bin/pip" uninstall --quiet --yes $unused
"$target/bin/pip" uninstall --quiet --yes pip setuptools wheel 2>/dev/null || true
find "$target" -type d \( -name tests -o -name test \) -path '*/site-packages/*' -prune -exec rm -rf {} +
"$target/bin/metastore" --version
