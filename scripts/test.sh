#!/usr/bin/env bash
# Runs a `cargo test` command to its end and prints what it did as one table: for each program passed, failed, ignored and skipped
# tests and the time; then each ignored and each skipped test with its reason, and each failed one with its panic.
#
#   scripts/test.sh [--expected-skips FILE] [--attempts N] cargo test ...
#
# Exit code: 0 if all passed; 1 if a test failed or a program could not be built; 3 if a test was skipped that FILE does not
# expect. A line of FILE is an extended regular expression for `TEST: REASON`; lines that begin with # are comments.
#
# With --attempts, each test that failed is run again by itself until it has passed or was run N times; every attempt is in the table.
# No test is run again where more than three failed, or where a program could not be built or was ended by a signal.
set -uo pipefail

readonly REPEATED_MAX=3
expected= attempts=1
while :; do
  case ${1:-} in
    --expected-skips)
      expected=$2
      [ -r "$expected" ] || { echo "test.sh: $expected: cannot be read" >&2; exit 2; } ;;
    --attempts)
      attempts=$2
      [[ $attempts =~ ^[1-9]$ ]] || { echo "test.sh: --attempts $attempts: must be 1 to 9" >&2; exit 2; } ;;
    *) break ;;
  esac
  shift 2
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export FLASHWEIR_SKIPS=$folder/skips
: >"$FLASHWEIR_SKIPS"

"$@" 2>&1 | tee "$folder/log"
status=${PIPESTATUS[0]}

# The command without its filter, and tests by name in its place.
build=()
for word in "$@"; do
  [ "$word" = -- ] && break
  build+=("$word")
done
mapfile -t failed < <(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$folder/log" | sort -u)
if [ ${#failed[@]} -gt $REPEATED_MAX ] ||
  grep -Eq "^error: could not compile|^  process didn't exit successfully" "$folder/log"; then
  attempts=1
fi
# Each test of the first run that has not passed yet. What failed without a test that failed is not run again.
for attempt in $([ ${#failed[@]} -eq 0 ] || seq 2 "$attempts"); do
  still=()
  for test in "${failed[@]}"; do
    printf '\nAttempt %d of %d: %s\n' "$attempt" "$attempts" "$test"
    # With two threads libtest prints a test's name and outcome on one line, whatever the test prints.
    "${build[@]}" -- --include-ignored --exact --test-threads 2 "$test" 2>&1 | tee "$folder/last"
    code=${PIPESTATUS[0]} outcome=FAILED
    if [ "$code" -eq 0 ] && grep -qxF "test $test ... ok" "$folder/last"; then outcome=passed; else still+=("$test"); fi
    echo "attempt $attempt of $attempts, alone: $test $outcome" >>"$folder/attempts"
  done
  failed=("${still[@]}")
  if [ ${#failed[@]} -eq 0 ]; then status=0; break; fi
done
touch "$folder/attempts"

# What cargo and libtest print, as a table. A program begins with `Running ...` or `Doc-tests ...`; a test's line holds its outcome.
awk -v REASON_LINES=6 -v skips="$FLASHWEIR_SKIPS" -v attempts="$folder/attempts" '
  /^ *Running / { program = $0; sub(/^ *Running /, "", program); sub(/ \(target.*/, "", program)
    crate = $0; sub(/.*deps\//, "", crate); sub(/-[0-9a-f]+\)?$/, "", crate); gsub(/^flashweir_/, "", crate)
    program = crate " (" (program ~ /^unittests/ ? "unit" : "integration") ")"; next }
  /^ *Doc-tests / { program = $2 " (doc)"; sub(/^flashweir_/, "", program); next }
  /^test result: / {
    match($0, /[0-9]+ passed/); passed = substr($0, RSTART) + 0
    match($0, /[0-9]+ failed/); failed = substr($0, RSTART) + 0
    match($0, /[0-9]+ ignored/); ignored = substr($0, RSTART) + 0
    seconds = $0; sub(/.*finished in /, "", seconds); sub(/s.*/, "", seconds)
    if (passed + failed + ignored > 0) {
      if (!(program in at)) { order[++programs] = program; at[program] = 1 }
      p[program] += passed; f[program] += failed; i[program] += ignored; s[program] += seconds
      all_passed += passed; all_failed += failed; all_ignored += ignored; all_seconds += seconds
    } next }
  /^test .* \.\.\. ignored/ { reason = $0; sub(/.*\.\.\. ignored,? ?/, "", reason)
    test = $2; why[reason] = why[reason] "\n    " test; next }
  /^test .* \.\.\. FAILED/ { failed_in[$2] = program; failed_tests[++all_failures] = $2 }
  /^---- .* stdout ----$/ { test = $2; panicked = 0; next }
  / panicked at / && !(test in reason_of) { panicked = 1; reason_of[test] = $0; sub(/.* panicked at /, "", reason_of[test]); next }
  /^note: |^$/ { panicked = 0 }
  panicked && panicked++ <= REASON_LINES { reason_of[test] = reason_of[test] "\n      " $0; next }
  /^error: could not compile|^error: test failed/ { errors = errors "\n  " $0 }
  END {
    while ((getline line < skips) > 0) { if (!(line in seen)) { seen[line] = 1; skipped[++all_skipped] = line } }
    print ""; print "| program | passed | failed | ignored | seconds |"; print "|---|---|---|---|---|"
    for (n = 1; n <= programs; n++) { q = order[n]; printf "| %s | %d | %d | %d | %.1f |\n", q, p[q], f[q], i[q], s[q] }
    printf "| all | %d | %d | %d | %.1f |\n", all_passed, all_failed, all_ignored, all_seconds
    if (all_ignored) { print "\nIgnored, by reason:"; for (reason in why) print "  " (reason == "" ? "(no reason)" : reason) ":" why[reason] }
    print "\nSkipped because this machine lacks something: " (all_skipped ? "" : "none")
    for (n = 1; n <= all_skipped; n++) print "  " skipped[n]
    if (all_failures) print "\nFailed:"
    for (n = 1; n <= all_failures; n++) {
      test = failed_tests[n]; print "  " failed_in[test] ": " test
      if (test in reason_of) print "      at " reason_of[test]
    }
    while ((getline line < attempts) > 0) print "  " line
    if (errors) print "\nErrors:" errors
    printf "\n%d passed, %d failed, %d skipped\n", all_passed, all_failed, all_skipped
  }' "$folder/log"

if [ "$status" -ne 0 ]; then exit 1; fi
if [ -n "$expected" ]; then
  grep -v '^#' "$expected" | grep -v '^$' >"$folder/patterns" || true
  if [ -s "$folder/patterns" ]; then
    grep -vxEf "$folder/patterns" "$FLASHWEIR_SKIPS" >"$folder/unexpected" || true
  else
    cp "$FLASHWEIR_SKIPS" "$folder/unexpected"
  fi
  if [ -s "$folder/unexpected" ]; then
    echo "test.sh: skipped, and $expected does not expect it:" >&2
    sort -u "$folder/unexpected" | sed 's/^/  /' >&2
    exit 3
  fi
fi
