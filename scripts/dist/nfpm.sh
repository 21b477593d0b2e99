#!/bin/sh
# Installs nfpm, which makes Debian packages and RPMs, from its Go module into a folder, once: nfpm.sh FOLDER. A minute of
# processor time. Later versions need a module that module proxies may lack.
set -eu
folder=$(realpath -m "$1")
[ ! -x "$folder/nfpm" ] || exit 0
command -v go >/dev/null || { echo "nfpm: Go is missing; no package can be made, and the test of the packages will say so" >&2; exit 0; }
if ! GOBIN="$folder" CGO_ENABLED=0 go install -trimpath -ldflags "-s -w" github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2 >/dev/null 2>&1; then
  echo "nfpm cannot be installed; no package can be made, and the test of the packages will say so" >&2
fi
