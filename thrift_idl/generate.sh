#!/bin/sh
# Regenerates metastore/thrift_gen, or another directory, from the .thrift files here. Needs Thrift compiler 0.17 (package
# thrift-compiler of Debian 12). Its classes ("slots" and "dynamic" make them half as large) become tables, of which
# metastore/thrift_gen/lazy.py makes the classes that a process uses.
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
target=${1:-$here/../metastore/thrift_gen}

version=$(thrift --version 2>/dev/null) || version="none"
case $version in
"Thrift version 0.17."*) ;;
*)
    echo "Thrift compiler 0.17 is needed to regenerate metastore/thrift_gen, found: $version" >&2
    exit 2
    ;;
esac

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
for idl in hive_metastore operators; do
    thrift -out "$made" -r --gen py:slots,dynamic "$here/$idl.thrift"
done
python=$here/../.venv/bin/python
"$python" "$here/required_fields.py" "$here/hive_metastore.thrift" "$here/operators.thrift" >"$made/required.py"
"$python" "$here/enum_fields.py" "$here/hive_metastore.thrift" "$here/operators.thrift" >"$made/enums.py"

rm -rf "$target/fb303" "$target/hive_metastore" "$target/operators" "$target/required.py" "$target/enums.py"
cp "$made/required.py" "$made/enums.py" "$target/"
"$python" "$here/tables.py" "$made" "$target"
