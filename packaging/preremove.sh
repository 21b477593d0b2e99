#!/bin/sh
# Stops the service before its program goes; an upgrade leaves it running (of Debian packages `upgrade`, of RPMs 1).
set -eu
case "${1:-remove}" in remove | 0) ;; *) exit 0 ;; esac
[ -d /run/systemd/system ] || exit 0
systemctl disable --now flashweir.socket flashweir.service
