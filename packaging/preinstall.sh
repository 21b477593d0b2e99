#!/bin/sh
# Makes the user of the service, of Debian packages and RPMs.
set -eu
getent group flashweir >/dev/null || groupadd --system flashweir
getent passwd flashweir >/dev/null ||
  useradd --system --gid flashweir --home-dir /var/lib/flashweir --no-create-home --shell /usr/sbin/nologin flashweir
