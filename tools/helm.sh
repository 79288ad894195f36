#!/usr/bin/env bash
# Render the chart's values of ci/ into deploy/k8s and the pod templates among them into deploy/sidecar, and let kubeconform
# judge them. helm and kubeconform are built as Go tools from their modules, once.
# With --check: only say whether the files there are what comes out.
set -euo pipefail
cd "$(dirname "$0")/.."

chart=deploy/helm/transaction-metastore
bin=$PWD/.data/go/bin
build() {
  [ -x "$bin/$1" ] && return
  command -v go >/dev/null || { echo "helm: Go is missing, with which $1 is built" >&2; exit 1; }
  printf 'helm: building %s (some minutes)\n' "$1" >&2
  GOPATH=$PWD/.data/go GOFLAGS=-modcacherw go install "$2"
}
build helm helm.sh/helm/v3/cmd/helm@v3.22.0
build kubeconform github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0

out=deploy
[ "${1:-}" = --check ] && out=$(mktemp -d)
mkdir -p "$out/k8s" "$out/sidecar"
for values in "$chart"/ci/*.yaml; do
  "$bin/helm" lint --quiet "$chart" -f "$values"
  "$bin/helm" template metastore "$chart" --namespace lake --kube-version 1.34.0 -f "$values" >"$out/k8s/$(basename "$values")"
done
.venv/bin/python - "$out" <<'PY'
import sys, pathlib, yaml
for rendered in pathlib.Path(sys.argv[1], "k8s").glob("*.yaml"):
    for document in filter(None, yaml.safe_load_all(rendered.read_text())):
        template = document.get("data", {}).get("driver-pod-template.yaml")
        if template:
            pathlib.Path(sys.argv[1], "sidecar", rendered.name).write_text(template.rstrip() + "\n")
PY
if [ "${1:-}" = --check ]; then
  for folder in k8s sidecar; do
    diff -r "deploy/$folder" "$out/$folder" || { echo "helm: deploy/$folder is not what the chart renders: run make manifests" >&2; exit 1; }
  done
fi

# The schemas that the wheel kubernetes-validate ships refer to each other by an address; kubeconform wants files.
schemas=$(mktemp -d)
for minor in 29 34; do
  mkdir "$schemas/$minor"
  cp .venv/lib/python3*/site-packages/kubernetes_validate/kubernetes-json-schema/v1."$minor".*-local-strict/*.json "$schemas/$minor"
  sed -i -e 's,"/api/_definitions.json,"_definitions.json,' -e 's,"$id": "https://kubernetes.io[^"]*","$comment": "",' "$schemas/$minor"/*.json
  "$bin/kubeconform" -strict -summary -skip Certificate,PrometheusRule,ServiceMonitor \
    -schema-location "$schemas/$minor/{{.ResourceKind}}{{.KindSuffix}}.json" "$out"/k8s/*.yaml
done
rm -rf "$schemas"
