#!/usr/bin/env bash
# Run the integration tests of an earlier release against this release's schema: both run side by side in an upgrade.
# RELEASE: a commit; without it the latest tag, else the commit before the newest migration. TESTS: which of its tests.
set -euo pipefail
cd "$(dirname "$0")/.."

newest=$(find migrations/versions -name '[0-9]*.py' | sort | tail -1)
before_newest() { git log -1 --diff-filter=A --format=%H -- "$newest" | sed 's/$/^/'; }
release=${RELEASE:-$(git describe --tags --abbrev=0 2>/dev/null || before_newest)}
tests=${TESTS:-tests/integration tests/scripts tests/model}

place=$(mktemp -d)
trap 'git worktree remove --force "$place/release" 2>/dev/null; rm -rf "$place"' EXIT
chmod 711 "$place"
git worktree add --detach --quiet "$place/release" "$release"
printf 'upgrade-check: %s, with the migrations up to %s\n' "$(git log -1 --format='%h %s' "$release")" "$(basename "$newest")" >&2
rm -rf "$place/release/migrations"
cp -r migrations "$place/release/"
python=$PWD/.venv/bin/python
cd "$place/release"
# A release restores nothing over tables that it does not know, and says so: three restore over the newest schema. The last
# changes each column of `tables`, also one that only triggers of a newer schema fill in.
not_here=(
  tests/integration/cli/test_backup.py::test_a_restore_that_is_killed_leaves_what_was_there
  tests/integration/cli/test_backup.py::test_the_commands_of_the_pages
  tests/integration/cli/test_backup.py::test_what_is_there_is_not_overwritten_unasked
  tests/integration/catalog/test_table_pieces.py::test_each_change_of_a_column_changes_what_clients_read)
# shellcheck disable=SC2086 - several paths and options
PYTHONPATH=$PWD "$python" -m pytest -q -n "${WORKERS:-2}" -m "not spark and not robustness" "${not_here[@]/#/--deselect=}" $tests "$@"
