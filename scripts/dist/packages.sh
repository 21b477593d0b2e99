#!/bin/sh
# Makes the Debian package and the RPM of a binary: packages.sh NFPM BINARY FOLDER. COMPRESSION is
# xz, or gzip, which is larger and faster.
set -eu
nfpm=$(realpath "$1")
binary=$(realpath "$2")
folder=$(realpath -m "$3")
cd "$(dirname "$0")/../.."
. scripts/dist/about.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
description=$work/nfpm.yaml
mkdir "$work/man"
"$binary" completions bash >"$work/flashweir"
"$binary" completions zsh >"$work/_flashweir"
"$binary" completions fish >"$work/flashweir.fish"
"$binary" manual "$work/man"
gzip -9n "$work"/man/*.1
sed "s|@BINARY@|$binary|;s|@TEXTS@|$work|;s|@ARCH@|$ARCH|;s|@VERSION@|$VERSION|;s|@COMPRESSION@|${COMPRESSION:-xz}|;s|@MTIME@|$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)|" \
  packaging/nfpm.yaml >"$description"
# Rights of files are in the description; those of folders follow the mask.
umask 022
for kind in deb rpm; do
  "$nfpm" package --config "$description" --packager $kind --target "$folder" >&2
done
