#!/usr/bin/env bash
# Regenerate metastore/thrift_gen from thrift_idl/. With --check: only say whether the checked-in code is what comes out.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v thrift >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    printf 'idl: installing the Thrift compiler\n' >&2
    apt-get update -qq && apt-get install -y -qq thrift-compiler >/dev/null
  else
    printf 'idl: the Thrift compiler is missing (Debian and Ubuntu: apt-get install thrift-compiler)\n' >&2
    exit 1
  fi
fi

if [ "${1:-}" = --check ]; then
  # Beside the tree: tests and other checks import what is in it meanwhile.
  made=$(mktemp -d)
  trap 'rm -rf "$made"' EXIT
  cp -a metastore/thrift_gen/. "$made"
  bash thrift_idl/generate.sh "$made" >&2
  if ! diff -r -q -x __pycache__ "$made" metastore/thrift_gen; then
    printf 'idl: metastore/thrift_gen is not what thrift_idl/ generates: run `make idl` and commit it\n' >&2
    exit 1
  fi
else
  bash thrift_idl/generate.sh
fi
