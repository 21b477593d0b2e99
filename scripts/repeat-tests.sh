#!/usr/bin/env bash
# Shows that chance does not decide whether `make test` passes: runs it again and again, every second time beside two processes that
# only compute (`stress -c 2`) and a program that holds 2,000 random ports of 127.0.0.1 and takes others every ten seconds.
#
#   scripts/repeat-tests.sh [RUNS [FOLDER]]
#
# RUNS (10); what each run printed is kept in FOLDER (target/repeated). Prints a line for each run and exits with 1 if one failed.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-10} folder=${2:-target/repeated}
mkdir -p "$folder"
scripts/install-missing.sh stress=stress python3=python3

takes_ports='
import random, socket, time
held = []
while True:
    for one in held: one.close()
    held = []
    while len(held) < 2000:
        one = socket.socket()
        try:
            one.bind(("127.0.0.1", random.randrange(1024, 65536)))
            one.listen(1)
            held.append(one)
        except OSError:
            one.close()
    time.sleep(10)
'
beside=()
finish() { for process in "${beside[@]}"; do kill "$process" 2>/dev/null || true; done; beside=(); }
trap finish EXIT

failed=0
for run in $(seq "$runs"); do
    what=alone
    if [ $((run % 2)) -eq 0 ]; then
        what="beside stress and taken ports"
        # Bounded, so that they end even if this script is killed.
        timeout 3600 stress -q -c 2 & beside+=($!)
        (ulimit -n 4096; exec timeout 3600 python3 -c "$takes_ports") & beside+=($!)
    fi
    began=$SECONDS
    if make test >"$folder/$run.log" 2>&1; then outcome=passed; else outcome=FAILED; failed=1; fi
    finish
    echo "run $run, $what: $outcome in $((SECONDS - began)) s, $(grep -E '^[0-9]+ passed, ' "$folder/$run.log" | tail -1)"
done
exit "$failed"
