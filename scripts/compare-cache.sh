#!/usr/bin/env bash
# What a hit costs, beside nginx's proxy_cache and Varnish (Debian's): CPU time for each, in interleaved rounds on one machine, and user
# instructions by callgrind (nginx and Flashweir), which a busy machine does not change. One document of 1 KiB, one worker each, 16
# kept connections of wrk. What is not installed is left out, by name.
#
#   scripts/compare-cache.sh BINARY [ROUNDS [SECONDS]]
set -euo pipefail
binary=$1 rounds=${2:-3} seconds=${3:-5}
few=300 many=3300 connections=16
# A document that every cache may keep for longer than this takes.
page='/work?max_age=3600'
folder=$(mktemp -d)
running=()
finish() {
    for process in "${running[@]}"; do kill "$process" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap finish EXIT

# A port that this process keeps until the script ends: bound and never listening, it goes to no program that does not ask for it.
exec {reserved}< <(exec python3 -c 'import signal, socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
print(s.getsockname()[1], flush=True)
signal.pause()')
running+=("$!")
read -r address <&"$reserved"

wait_for() { # PORT
    for _ in $(seq 300); do
        if curl -sfo /dev/null "http://127.0.0.1:$1$page"; then return; fi
        sleep .1
    done
    echo "nothing answers on port $1" >&2
    exit 1
}

family() { # A process and its descendants.
    echo "$1"
    for child in $(pgrep -P "$1" || true); do family "$child"; done
}

ticks() { # User and system time of a process and its descendants, in clock ticks.
    local sum=0 times
    for process in $(family "$1"); do
        # The name stands in brackets and may have blanks; behind it the times are fields 12 and 13.
        times=$(sed 's/.*) //' "/proc/$process/stat" 2>/dev/null | awk '{ print $12 + $13 }')
        sum=$((sum + ${times:-0}))
    done
    echo "$sum"
}

nginx_config() { # PORT
    cat << CONFIG
worker_processes 1; pid $folder/nginx.pid; error_log $folder/nginx.log; daemon off; master_process off;
events { worker_connections 512; }
http {
    access_log off; keepalive_requests 1000000000;
    client_body_temp_path $folder/body; proxy_temp_path $folder/temp; fastcgi_temp_path $folder/fastcgi;
    uwsgi_temp_path $folder/uwsgi; scgi_temp_path $folder/scgi;
    proxy_cache_path $folder/store keys_zone=store:10m;
    server {
        listen 127.0.0.1:$1;
        location / { proxy_pass http://127.0.0.1:$origin; proxy_cache store; proxy_cache_lock on; }
    }
}
CONFIG
}

flashweir_config() { # PORT
    cat << CONFIG
listen.address = "127.0.0.1:$1"
admin.address = "127.0.0.1:0"
upstream.urls = ["http://127.0.0.1:$origin"]
state.file = "$folder/state.json"
gateway.workers = 1
log.level = "error"
cache.mode = "always"
CONFIG
}

start() { # NAME: starts it at $address and sets $server.
    case $1 in
    flashweir)
        flashweir_config "$address" > "$folder/flashweir.toml"
        ${wrapper:-} "$binary" run --config "$folder/flashweir.toml" > "$folder/$1.out" 2>&1 &
        ;;
    nginx)
        nginx_config "$address" > "$folder/nginx.conf"
        ${wrapper:-} nginx -c "$folder/nginx.conf" > "$folder/$1.out" 2>&1 &
        ;;
    varnish)
        varnishd -F -n "$folder/varnish" -a "127.0.0.1:$address" -b "127.0.0.1:$origin" -s malloc,64m \
            > "$folder/$1.out" 2>&1 &
        ;;
    esac
    server=$!
    running+=("$server")
    wait_for "$address"
}

stop() {
    kill "$server"
    wait "$server" 2>/dev/null || true
}

PATH=$PATH:/usr/sbin
"$binary" origin --listen 127.0.0.1:0 --work-ms 0.05 > "$folder/origin" 2>&1 &
running+=($!)
for _ in $(seq 100); do grep -q '127\.0\.0\.1:' "$folder/origin" && break; sleep .1; done
origin=$(grep -om1 '127\.0\.0\.1:[0-9]*' "$folder/origin" | cut -d: -f2)

names=(flashweir)
for name in nginx varnish; do
    program=$name
    [ "$name" = varnish ] && program=varnishd
    if command -v "$program" > /dev/null; then names+=("$name"); else echo "left out, not installed: $program"; fi
done

per_second=$(getconf CLK_TCK)
for round in $(seq "$rounds"); do
    for name in "${names[@]}"; do
        start "$name"
        before=$(ticks "$server")
        result=$(wrk -t1 -c"$connections" -d"${seconds}s" "http://127.0.0.1:$address$page")
        after=$(ticks "$server")
        stop
        requests=$(awk '/requests in/ { print $1 }' <<< "$result")
        failed=$(awk '/Non-2xx/ { print $NF }' <<< "$result")
        echo "$round $name $(((after - before) * 1000000 / per_second)) $requests ${failed:-0}" >> "$folder/results"
    done
done
awk '{ us[$2] += $3; requests[$2] += $4; failed[$2] += $5 }
     END {
         own = us["flashweir"] / requests["flashweir"]
         printf "%-10s %9.2f us of CPU a hit (%d hits, %d failed)\n", "flashweir", own, requests["flashweir"], failed["flashweir"]
         for (name in us) if (name != "flashweir") {
             other = us[name] / requests[name]
             printf "%-10s %9.2f us of CPU a hit (%d hits, %d failed): flashweir takes %.2f of it\n", name, other, requests[name], failed[name], own / other
         }
     }' "$folder/results"

instructions() { # NAME REQUESTS
    wrapper="valgrind --tool=callgrind --callgrind-out-file=$folder/counts"
    [ "$1" = flashweir ] && wrapper="$wrapper --toggle-collect=flashweir_gateway::worker::run*"
    start "$1"
    # One connection for all.
    for _ in $(seq "$2"); do printf 'url = "http://127.0.0.1:%s%s"\noutput = "/dev/null"\n' "$address" "$page"; done > "$folder/urls"
    curl -sSf --config "$folder/urls"
    stop
    wrapper=
    sed -n 's/^summary: \([0-9]*\).*/\1/p; s/^totals: \([0-9]*\).*/\1/p' "$folder/counts" | tail -1
}

if command -v valgrind > /dev/null; then
    for name in flashweir nginx; do
        [[ " ${names[*]} " == *" $name "* ]] || continue
        total=$(instructions "$name" "$many")
        base=$(instructions "$name" "$few")
        echo "$(((total - base) / (many - few))) user instructions a hit: $name"
    done
else
    echo "left out, not installed: valgrind"
fi
