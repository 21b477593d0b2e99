#!/bin/sh
# Installs h2spec into a folder, once: h2spec.sh FOLDER. It has no go.mod in the version that the module proxy serves, so
# `go install` alone does not find its module; a module made for the purpose does.
set -eu
folder=$(realpath -m "$1")
[ ! -x "$folder/h2spec" ] || exit 0
module=$(mktemp -d)
trap 'rm -rf "$module"' EXIT
cd "$module"
if ! { go mod init h2spec-install && go get github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible &&
  GOBIN="$folder" go install github.com/summerwind/h2spec/cmd/h2spec; } >log 2>&1; then
  tail -3 log >&2
  echo "h2spec cannot be installed; its test will say so" >&2
fi
