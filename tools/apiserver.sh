#!/usr/bin/env bash
# Build a real Kubernetes API server and its etcd as Go tools from their modules, once (half an hour on two cores): .data/go/bin.
set -euo pipefail
cd "$(dirname "$0")/.."
kubernetes=1.34.4 etcd=3.6.6
export GOPATH=$PWD/.data/go GOFLAGS=-modcacherw
bin=$GOPATH/bin
command -v go >/dev/null || { echo "apiserver: Go is missing, with which it is built" >&2; exit 1; }

# A module of its own for each, since theirs replace others by folders of their repositories.
module() {
  rm -rf "$GOPATH/build/$1"
  mkdir -p "$GOPATH/build/$1"
  cd "$GOPATH/build/$1"
  go mod init tools 2>/dev/null
}

if [ ! -x "$bin/etcd" ]; then
  printf 'apiserver: building etcd\n' >&2
  module etcd
  for part in server api client/pkg client pkg; do go mod edit -require="go.etcd.io/etcd/$part/v3@v$etcd"; done
  go build -mod=mod -o "$bin/etcd" go.etcd.io/etcd/server/v3
fi
if [ ! -x "$bin/kube-apiserver" ]; then
  printf 'apiserver: building kube-apiserver\n' >&2
  module kubernetes
  source=$(go mod download -json "k8s.io/kubernetes@v$kubernetes" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  go mod edit -require="k8s.io/kubernetes@v$kubernetes"
  for part in $(sed -nE 's,^\s*k8s.io/([a-z0-9-]+) v0\.0\.0$,\1,p' "$source/go.mod"); do
    go mod edit -replace="k8s.io/$part=k8s.io/$part@v0${kubernetes#1}"
  done
  version=k8s.io/component-base/version
  go build -mod=mod -ldflags "-s -w -X $version.gitVersion=v$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=34" \
    -o "$bin/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
fi
