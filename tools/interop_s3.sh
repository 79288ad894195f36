#!/usr/bin/env bash
# What the tests on S3 need beside .venv: s3fs, and moto, the S3 server. They lie in an environment of their own, which sees
# .venv's packages: s3fs asks for older versions of some than everything else is tested with.
set -euo pipefail
cd "$(dirname "$0")/.."
place=.data/interop/s3/python
wanted=$(sha256sum tools/interop_s3.sh constraints.txt)
if [ "$(cat "$place/.made" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$place"
  .venv/bin/python -m venv "$place"
  "$place/bin/python" - "$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" <<'PY'
import pathlib, sys, sysconfig
pathlib.Path(sysconfig.get_path("purelib"), "project.pth").write_text(f"import site; site.addsitedir({sys.argv[1]!r})\n")
PY
  PIP_CONSTRAINT="" "$place/bin/python" -m pip install --quiet --disable-pip-version-check 's3fs>=2024.6' 'moto[s3]>=5,<6' flask flask-cors
  printf '%s' "$wanted" >"$place/.made"
fi
