#!/bin/sh
# Moves the symbols of release binaries into files beside them: split-symbols.sh BINARY...
#
# Debuggers, valgrind and the backtrace of a panic find BINARY.debug by a link in the binary. Cargo's own `strip = "symbols"` with
# `split-debuginfo = "packed"` does not do this on Linux: the .dwp file beside the binary is of no use without the part of the debug
# information that stays in the binary, and that part is stripped.
set -eu

for binary; do
  # Binaries with the link were split before.
  if readelf --sections --wide "$binary" | grep -q ' \.gnu_debuglink '; then continue; fi
  objcopy --only-keep-debug --compress-debug-sections "$binary" "$binary.debug"
  # Into a new file: cargo keeps a hard link to the old one, and builds nothing again for it.
  objcopy --strip-all --add-gnu-debuglink="$binary.debug" "$binary" "$binary.stripped"
  mv "$binary.stripped" "$binary"
  printf '%s: %s bytes, symbols in %s.debug\n' "$binary" "$(stat -c %s "$binary")" "$binary"
done
