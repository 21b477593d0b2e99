#!/usr/bin/env bash
# Fuzzing guided by coverage, on the stable toolchain: fuzz.sh [SECONDS [TARGET...]]. The seconds are shared by all targets.
#
# What is found on the way is kept in target/fuzz/corpus, so a later run goes on where this one ended; an input that fails is
# kept in target/fuzz/failures. Put it into lab/fuzz/seeds/TARGET under a name that says what it is, and mend what it found.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-600}
shift || true
triple=$(rustc -vV | sed -n 's/^host: //p')
directory=$(realpath -m "${CARGO_TARGET_DIR:-target}/fuzz")

# What cargo-fuzz sets for a nightly toolchain: a counter for each edge, the addresses of all edges, and the operands of comparisons.
export RUSTFLAGS="-Cpasses=sancov-module -Ccodegen-units=1 \
  -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
# With a target named, build scripts and procedural macros are built without these flags.
"${CARGO:-cargo}" build --locked --profile fuzz -p flashweir-fuzz --features libfuzzer --target "$triple" --target-dir "$directory"
fuzzer=$directory/$triple/fuzz/flashweir-fuzz

if [ $# -eq 0 ]; then
  for folder in lab/fuzz/seeds/*/; do set -- "$@" "$(basename "$folder")"; done
fi
each=$((seconds / $#))
[ "$each" -ge 1 ] || each=1

failed=0
printf '%-20s %12s %10s %8s %8s\n' target executions a_second edges inputs
for target in "$@"; do
  corpus=$directory/corpus/$target failures=$directory/failures/$target log=$directory/$target.log
  mkdir -p "$corpus" "$failures"
  if "$fuzzer" "--target=$target" -max_total_time="$each" -max_len=4096 -timeout=30 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="$failures/" "$corpus" "lab/fuzz/seeds/$target" >"$log" 2>&1; then
    verdict=
  else
    verdict="  FAILED: $log"
    failed=1
  fi
  stat() { sed -n "s/^stat::$1: *//p" "$log" | tail -1; }
  edges=$(grep -o 'cov: [0-9]*' "$log" | tail -1 | grep -o '[0-9]*' || true)
  printf '%-20s %12s %10s %8s %8s%s\n' "$target" "$(stat number_of_executed_units)" "$(stat average_exec_per_sec)" \
    "$edges" "$(find "$corpus" -type f | wc -l)" "$verdict"
done
exit "$failed"
