#!/bin/sh
# Installs gRPC's own interoperability client and server into a folder, once: grpc-interop.sh FOLDER.
set -eu
version=v1.67.1
folder=$(realpath -m "$1")
[ ! -x "$folder/grpc-interop-server" ] || exit 0
module=$(mktemp -d)
trap 'rm -rf "$module"' EXIT
cd "$module"
if ! { go mod init grpc-interop-install && go get "google.golang.org/grpc/interop/client@$version" "google.golang.org/grpc/interop/server@$version" &&
  GOBIN="$module" go install google.golang.org/grpc/interop/client google.golang.org/grpc/interop/server; } >log 2>&1; then
  tail -3 log >&2
  echo "gRPC's interoperability programs cannot be installed; their test will say so" >&2
  exit 0
fi
mkdir -p "$folder"
mv client "$folder/grpc-interop-client"
mv server "$folder/grpc-interop-server"
