#!/bin/sh
# Makes a fresh Debian root with nginx as one archive, once: debian-root.sh ARCHIVE. Needs root. A minute, and 190 MB.
set -eu
archive=$(realpath -m "$1")
[ ! -e "$archive" ] || exit 0
for tool in mmdebstrap apt-get; do
  command -v $tool >/dev/null || { echo "debian-root: $tool is missing; the test of the packages will say so" >&2; exit 0; }
done
[ "$(id -u)" -eq 0 ] || { echo "debian-root: not root; the test of the packages will say so" >&2; exit 0; }
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
mkdir -p "$(dirname "$archive")"
# libelf1: a binary of the tests, unlike that of `make dist`, is not linked statically.
if ! mmdebstrap --quiet --variant=minbase --include=nginx-light,curl,libelf1 "$release" "$archive.part.tar" 2>&1 | tail -5 >&2 ||
  [ ! -s "$archive.part.tar" ]; then
  rm -f "$archive.part.tar"
  echo "debian-root: it cannot be made; the test of the packages will say so" >&2
  exit 0
fi
mv "$archive.part.tar" "$archive"
