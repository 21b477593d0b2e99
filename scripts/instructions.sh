#!/usr/bin/env bash
# User instructions for each proxied request (HTTP/1.1, one kept connection, an answer of 1 KiB), by callgrind: what a worker's
# thread executes for 3,300 requests less what it does for 300. Unlike times they are the same on a busy machine, within 1 %.
#
#   [HTTP2=1] scripts/instructions.sh BINARY...
#
# Prints a line for each binary. The first, with flashweir-lab beside it or on PATH, is also the origin of all. With HTTP2=1 the client
# speaks HTTP/2 over TLS, one stream after another (without TLS, curl 7.88 of Debian 12 uses a connection of HTTP/2 once only).
set -euo pipefail
few=300 many=3300
folder=$(mktemp -d)
trap 'kill "${running[@]}" 2>/dev/null || true; rm -rf "$folder"' EXIT
running=()

scheme=http
: > "$folder/gateway.toml"
if [ -n "${HTTP2:-}" ]; then
    scheme=https
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
        -keyout "$folder/key.pem" -out "$folder/cert.pem" 2>/dev/null
    printf 'listen.tls.certificate = "cert.pem"\nlisten.tls.key = "key.pem"\n' > "$folder/gateway.toml"
fi

# Prints the address in the first line of the file that has one.
address() {
    for _ in $(seq 600); do
        if grep -om1 '127\.0\.0\.1:[0-9]*' "$1" 2>/dev/null; then return; fi
        sleep .1
    done
    echo "no address in $1:" >&2; cat "$1" >&2; exit 1
}

instructions() { # BINARY REQUESTS
    rm -f "$folder/ready.json"
    valgrind --tool=callgrind --callgrind-out-file="$folder/counts" --toggle-collect='flashweir_gateway::worker::run*' \
        "$1" run --config "$folder/gateway.toml" --upstream "http://$origin" --listen 127.0.0.1:0 --admin 127.0.0.1:0 --ready-file "$folder/ready.json" \
        --workers 1 --log error > "$folder/gateway" 2>&1 &
    local gateway=$! listen
    running+=("$gateway")
    for _ in $(seq 600); do [ -e "$folder/ready.json" ] && break; sleep .1; done
    listen=$(sed 's/.*"listen":\["\([^"]*\)".*/\1/' "$folder/ready.json")
    curl -sSfko /dev/null "$scheme://$listen/[1-$2]"
    kill "$gateway"
    wait "$gateway"
    sed -n 's/^summary: \([0-9]*\).*/\1/p; s/^totals: \([0-9]*\).*/\1/p' "$folder/counts" | tail -1
}

"$1" origin --listen 127.0.0.1:0 --work-ms 0.05 > "$folder/origin" 2>&1 &
running+=($!)
origin=$(address "$folder/origin")
for binary in "$@"; do
    total=$(instructions "$binary" "$many")
    base=$(instructions "$binary" "$few")
    echo "$(((total - base) / (many - few))) instructions for each request: $binary"
done
