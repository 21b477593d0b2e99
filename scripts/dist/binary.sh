#!/bin/sh
# Builds the static binary: binary.sh TARGET-DIRECTORY. Prints its path; the same commit, tools and packages give the same
# bytes in any folder. FEATURES are those of flashweir-cli.
set -eu
cd "$(dirname "$0")/../.."
target=$(realpath -m "$1")
cargo_home=$(realpath "${CARGO_HOME:-$HOME/.cargo}")
host=$(rustc -vV | sed -n 's/^host: //p')
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
# Folders of this machine are not in the binary: neither those of Rust sources nor those of C sources of libraries.
RUSTFLAGS="-C target-feature=+crt-static --remap-path-prefix=$cargo_home=/cargo --remap-path-prefix=$PWD=/flashweir --remap-path-prefix=$target=/target"
CFLAGS="-ffile-prefix-map=$cargo_home=/cargo -ffile-prefix-map=$target=/target -ffile-prefix-map=$PWD=/flashweir"
export SOURCE_DATE_EPOCH RUSTFLAGS CFLAGS
# With a named target, the flags are those of the binary alone: macros and build scripts cannot be linked statically.
CARGO_TARGET_DIR=$target cargo build --release --locked -p flashweir-cli --features "${FEATURES:-kernel,kubernetes}" --target "$host" >&2
echo "$target/$host/release/flashweir"
