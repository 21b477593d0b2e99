#!/bin/sh
# After an installation nothing is started: the port and the protected service are to be set first. After an upgrade a
# service that runs is restarted; its socket stays open, and no connection is dropped.
set -eu
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
if flashweir config check /etc/flashweir/flashweir.toml >/dev/null; then
  systemctl try-restart flashweir.service
else
  echo "flashweir: the configuration is not this version's; a service that runs was not restarted" >&2
fi
