#!/bin/sh
# What `flashweir agent` costs beside a busy service, asked once a second: processor time and memory. The bars: 0.5 % of a core, 10 MB.
# Usage: scripts/agent-cost.sh PROGRAM [SECONDS]
set -eu
program=$1
seconds=${2:-30}
work=$(mktemp -d)
trap 'kill $service $agent 2>/dev/null || true; rm -rf "$work"' EXIT
"$program" origin --listen 127.0.0.1:0 --workers 32 --iterations-per-ms 1000 >"$work/origin" &
service=$!
"$program" agent --listen 127.0.0.1:0 --pid $service --port 3000 >"$work/agent" &
agent=$!
until grep -q '^agent on ' "$work/agent"; do sleep 0.1; done
address=$(sed 's/^agent on //' "$work/agent")
used() { sed 's/.*) //' "/proc/$agent/stat" | awk '{ print $12 + $13 }'; }
sleep 2
before=$(used)
for _ in $(seq "$seconds"); do
    curl --silent --output /dev/null "$address/load"
    sleep 1
done
ticks=$(($(used) - before))
memory=$(awk '/^VmRSS/ { print $2 }' "/proc/$agent/status")
awk -v ticks="$ticks" -v seconds="$seconds" -v memory="$memory" 'BEGIN {
    printf "agent: %.2f %% of a core (bar 0.5), %.1f MB resident (bar 10)\n", ticks / seconds, memory / 1000
}'
