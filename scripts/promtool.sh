#!/bin/sh
# Puts promtool into a folder, once: promtool.sh FOLDER. It comes with Debian's package of Prometheus, which is unpacked and not installed:
# an installed one adds a service, a user and a dozen packages of its pages.
set -eu
folder=$(realpath -m "$1")
[ ! -x "$folder/promtool" ] || exit 0
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
# apt-get gives its rights up to read into a folder.
chmod 755 "$unpacked"
cd "$unpacked"
if ! apt-get download -qq prometheus >log 2>&1; then
  # A new machine has no lists of packages.
  [ "$(id -u)" -ne 0 ] || apt-get update -qq >>log 2>&1 || true
  apt-get download -qq prometheus >>log 2>&1 || true
fi
if ! { dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool; } >>log 2>&1; then
  tail -3 log >&2
  echo "promtool cannot be installed: it needs Debian's package of Prometheus" >&2
  exit 1
fi
mkdir -p "$folder"
mv usr/bin/promtool "$folder/promtool"
