#!/bin/sh
# `apt-get purge` takes what was learned, too. The user stays: files elsewhere may be its own.
set -eu
[ ! -d /run/systemd/system ] || systemctl daemon-reload
[ "${1:-}" != purge ] || rm -rf /var/lib/flashweir
