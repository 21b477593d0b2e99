#!/bin/sh
# Writes the SBOM of the static binary (CycloneDX, JSON): sbom.sh CARGO-CYCLONEDX FILE. FEATURES are those of binary.sh.
set -eu
cyclonedx=$(realpath "$1")
file=$(realpath -m "$2")
cd "$(dirname "$0")/../.."
. scripts/dist/about.sh
host=$(rustc -vV | sed -n 's/^host: //p')
# In a copy: it writes a file beside the manifest of each crate of the workspace.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar --create --exclude='./target*' --exclude=./.git --exclude=./dist . | tar --extract --directory "$copy"
(cd "$copy/crates/cli" && "$cyclonedx" cyclonedx --quiet --format json --spec-version 1.5 --all --target "$host" \
  --features "${FEATURES:-kernel,kubernetes}" --override-filename sbom)
sed "s|$copy|/flashweir|g" "$copy/crates/cli/sbom.json" >"$file"
