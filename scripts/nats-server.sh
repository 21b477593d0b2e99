#!/bin/sh
# Installs nats-server into a folder, once: nats-server.sh FOLDER. Debian's is older than the 2.10 that the gateway needs.
set -eu
folder=$(realpath -m "$1")
[ ! -x "$folder/nats-server" ] || exit 0
if ! GOBIN="$folder" go install github.com/nats-io/nats-server/v2@v2.15.2 >/dev/null 2>&1; then
  echo "nats-server cannot be installed; its tests will say so" >&2
fi
