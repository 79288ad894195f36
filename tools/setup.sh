#!/usr/bin/env bash
# Make .venv what pyproject.toml and constraints.txt say, and see to Java. Does nothing when nothing changed.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
as_root() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null || ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  say "Python 3.11 or newer is needed and '$python' is not one. Install it, or name one: make setup PYTHON=python3.12"
  exit 1
fi

# Spark needs Java 17 or newer, and the tests that ask Hive's own classes a compiler; everything else runs without it.
see_to_java() {
  local java=java major
  [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/java" ] && java="$JAVA_HOME/bin/java"
  major=$("$java" -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -1 || true)
  if [ "${major:-0}" -lt 17 ] || ! command -v "${java%java}javac" >/dev/null; then
    if as_root; then
      say "installing Java 17 with its compiler (found: ${major:-none}), which Spark and the tests need"
      if ! { apt-get update -qq && apt-get install -y -qq openjdk-17-jdk-headless >/dev/null; }; then
        say "Java 17 could not be installed with apt-get. The server runs without it; reading, writing and compacting tables does not."
      fi
    else
      say "Java 17 or its compiler is missing (found: ${major:-none}). The server runs without it; reading, writing and compacting tables with"
      say "Spark does not. Install a JDK 17 (Debian and Ubuntu: apt-get install openjdk-17-jdk-headless)."
    fi
  fi
}

# Tests of logins ask a real KDC and a real directory server, and the package gssapi is compiled; without them they are skipped.
see_to_logins() {
  if as_root && ! { [ -x /usr/sbin/krb5kdc ] && [ -x /usr/sbin/slapd ] && command -v krb5-config >/dev/null; }; then
    say "installing a Kerberos KDC and slapd, which the tests of logins need"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq krb5-kdc krb5-admin-server libkrb5-dev gcc slapd; } >/dev/null 2>&1 ||
      say "they could not be installed with apt-get: those tests are skipped"
  fi
  if command -v krb5-config >/dev/null; then
    .venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps -w .venv/wheels -c constraints.txt gssapi >&2 ||
      say "gssapi could not be compiled: tests of Kerberos are skipped"
  fi
}

stamp=.venv/.setup-stamp
wanted=$(cat pyproject.toml setup.py constraints.txt tools/setup.sh | sha256sum | cut -d' ' -f1)
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  if [ ! -x .venv/bin/python ] && ! "$python" -m venv .venv 2>/dev/null; then
    rm -rf .venv
    if ! as_root; then
      say "Python's venv module is missing (Debian and Ubuntu: apt-get install python3-venv)."
      exit 1
    fi
    say "installing python3-venv"
    apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null
    "$python" -m venv .venv
  fi
  { see_to_java; see_to_logins; } & # apt-get and pip do not wait for each other
  say "installing $(grep -c == constraints.txt) packages into .venv, a minute or two; the largest is PySpark"
  PIP_CONSTRAINT="" .venv/bin/python -m pip install --no-compile --disable-pip-version-check --progress-bar off \
    -c constraints.txt -e '.[dev]' | sed -u -nE 's/^ *(Downloading|Building wheel for) ([^ ]+).*/setup: \1 \2/p; s/^(Installing) .*/setup: \1 all of them/p' >&2
  wait
  if ls .venv/wheels/gssapi-*.whl >/dev/null 2>&1; then
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt .venv/wheels/gssapi-*.whl >&2
  fi
  printf '%s' "$wanted" >"$stamp"
  say "done"
else
  see_to_java
fi
