#!/usr/bin/env bash
# Render the chart's values of ci/ into deploy/k8s, with helm built as a Go tool from its module.
# With --check: only say whether the files there are what comes out.
set -euo pipefail
cd "$(dirname "$0")/.."

chart=deploy/helm/transaction-metastore
bin=$PWD/.data/go/bin
if [ ! -x "$bin/helm" ]; then
  command -v go >/dev/null || { echo "helm: Go is missing, with which helm is built" >&2; exit 1; }
  printf 'helm: building it (some minutes)\n' >&2
  GOPATH=$PWD/.data/go GOFLAGS=-modcacherw go install helm.sh/helm/v3/cmd/helm@v3.22.0
fi

out=deploy/k8s
[ "${1:-}" = --check ] && out=$(mktemp -d)
for values in "$chart"/ci/*.yaml; do
  "$bin/helm" lint --quiet "$chart" -f "$values"
  "$bin/helm" template metastore "$chart" --namespace lake --kube-version 1.34.0 -f "$values" >"$out/$(basename "$values")"
done
if [ "${1:-}" = --check ]; then
  diff -r deploy/k8s "$out" || { echo "helm: deploy/k8s is not what the chart renders: run make manifests" >&2; exit 1; }
fi
