#!/bin/sh
# Installs helm into a folder, once, for the tests of the chart: helm.sh FOLDER. Cold two minutes of processor time.
set -eu
folder=$(realpath -m "$1")
[ ! -x "$folder/helm" ] || exit 0
command -v go >/dev/null || { echo "helm: Go is missing; the chart's tests will say that they are skipped" >&2; exit 0; }
if ! GOBIN="$folder" CGO_ENABLED=0 go install -trimpath -ldflags "-s -w" helm.sh/helm/v3/cmd/helm@v3.22.0 >/dev/null 2>&1; then
  echo "helm cannot be installed; the chart's tests will say so" >&2
fi
