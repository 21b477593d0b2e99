#!/bin/sh
# Makes what is handed out: dist.sh TOOLS TARGET-DIRECTORY FOLDER. TOOLS has nfpm and cargo-cyclonedx, TARGET-DIRECTORY is cargo's.
set -eu
tools=$(realpath "$1")/bin
target=$(realpath -m "$2")
folder=$(realpath -m "$3")
cd "$(dirname "$0")/../.."
. scripts/dist/about.sh
# Scripts for packages would take dist/ for one of theirs; every file in it is made here.
rm -rf "$folder"
mkdir -p "$folder"
name=flashweir-$VERSION-linux-$ARCH
binary=$(scripts/dist/binary.sh "$target")
if readelf --program-headers "$binary" | grep -q INTERP; then
  echo "dist: the binary is not linked statically" >&2
  exit 1
fi
# Symbols go into a file beside it, which the binary names.
objcopy --only-keep-debug --compress-debug-sections "$binary" "$folder/$name.debug"
(cd "$folder" && objcopy --strip-all --add-gnu-debuglink="$name.debug" "$binary" "$name")
chmod 755 "$folder/$name"
chmod 644 "$folder/$name.debug"
# No folder of this machine: neither the user's nor the tree's.
for path in "$HOME" "$PWD" "$target"; do
  if grep --binary-files=text --quiet --fixed-strings "$path/" "$folder/$name" "$folder/$name.debug"; then
    echo "dist: $path is in the binary" >&2
    exit 1
  fi
done
scripts/dist/packages.sh "$tools/nfpm" "$folder/$name" "$folder"
scripts/dist/image.sh "$folder/$name" "$folder/$name.oci.tar"
scripts/dist/sbom.sh "$tools/cargo-cyclonedx" "$folder/flashweir-$VERSION.cdx.json"
(cd "$folder" && sha256sum -- * >SHA256SUMS)
ls -l "$folder"
