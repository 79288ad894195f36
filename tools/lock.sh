#!/usr/bin/env bash
# Write constraints.txt anew: what pip chooses today for everything that pyproject.toml asks for.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"${PYTHON:-python3}" -m venv "$fresh"
"$fresh/bin/pip" install --quiet --disable-pip-version-check '.[dev]'
{
  # shellcheck disable=SC2016
  printf '# Every version that `make setup` installs; `make lock` writes this file anew.\n'
  "$fresh/bin/pip" freeze | grep -vE '@ file|^-e'
} >constraints.txt
