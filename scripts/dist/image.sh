#!/bin/sh
# Makes an OCI image of a static binary alone, as one archive: image.sh BINARY ARCHIVE. Neither a daemon nor root.
set -eu
binary=$(realpath "$1")
archive=$(realpath -m "$2")
cd "$(dirname "$0")/../.."
. scripts/dist/about.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
umask 022
# A folder with the program in it, so that the layer has both with these rights and times.
mkdir "$work/bin"
install -m 0755 "$binary" "$work/bin/flashweir"
touch -d "@$SOURCE_DATE_EPOCH" "$work/bin/flashweir" "$work/bin"
image=$work/image:$VERSION
umoci init --layout "$work/image"
umoci new --image "$image"
umoci insert --rootless --image "$image" --history.created "$created" --history.created_by "scripts/dist/image.sh" \
  "$work/bin" /usr/bin
# 65532 is no user of common systems, and not root.
umoci config --image "$image" --no-history --created "$created" --architecture "$ARCH" --os linux \
  --config.user 65532:65532 --config.workingdir / --config.env PATH=/usr/bin \
  --config.entrypoint /usr/bin/flashweir --config.cmd --help --config.exposedports 8080/tcp \
  --config.stopsignal SIGTERM \
  --config.label "org.opencontainers.image.title=flashweir" \
  --config.label "org.opencontainers.image.version=$VERSION" \
  --config.label "org.opencontainers.image.licenses=Apache-2.0"
umoci gc --layout "$work/image"
tar --create --file "$archive" --directory "$work/image" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner \
  --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" .
