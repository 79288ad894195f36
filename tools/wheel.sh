#!/usr/bin/env bash
# A wheel in dist/ with the jar of the catalog for each of these Sparks. A Spark that `make spark-versions` has fetched is taken from there.
set -euo pipefail
cd "$(dirname "$0")/.."
homes=()
names=()
for version in ${SPARKS:-4.0 4.1 4.2 4.3}; do
  home=$(compgen -G ".data/spark-versions/$version/lib/python3*/site-packages/pyspark" || true)
  if [ -z "$home" ]; then
    home=.data/sparks/$version/pyspark
    [ -d "$home/jars" ] || PIP_CONSTRAINT="" .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
      --target ".data/sparks/$version" "pyspark==$version.*"
  fi
  homes+=("$PWD/$home")
  names+=("spark-$version.jar")
done
rm -rf build dist
SPARK_HOME=$(IFS=:; echo "${homes[*]}") .venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
rm -rf build
wheel=$(echo dist/*.whl)
files=$(.venv/bin/python -m zipfile -l "$wheel")
for name in "${names[@]}"; do
  [[ $files == *"metastore/spark/jvm/$name "* ]] || { echo "$wheel lacks $name: is there a Java compiler?" >&2; exit 1; }
done
echo "$wheel: ${names[*]}"
