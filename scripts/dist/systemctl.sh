#!/bin/sh
# Stands in for systemctl in a root in which systemd does not run, for the commands of docs/install.md: the service is what
# flashweir.service says, started by manager.pl.
set -eu

unit=/usr/lib/systemd/system/flashweir.service
setting() { sed -n "s/^$1=//p" "$unit"; }

until_true() {
  for _ in $(seq 300); do
    if "$@"; then return 0; fi
    sleep 0.1
  done
  echo "systemctl: not within 30 s: $*" >&2
  exit 1
}
is_running() { [ -e /run/flashweir.pid ] && kill -0 "$(cat /run/flashweir.pid)" 2>/dev/null; }
is_gone() { ! is_running; }
is_ready() { [ -e /run/flashweir.ready ]; }

open_socket() {
  [ ! -e /run/flashweir.manager ] || return 0
  # shellcheck disable=SC2046  # the words of the command
  setsid /usr/local/lib/manager.pl $(setting ExecStart) >>/run/flashweir.log 2>&1 </dev/null &
  until_true test -e /run/flashweir.manager
}
start() {
  open_socket
  ! is_running || return 0
  rm -f /run/flashweir.ready
  kill -USR1 "$(cat /run/flashweir.manager)"
  until_true is_ready
}
stop() {
  ! is_running || kill -TERM "$(cat /run/flashweir.pid)"
  until_true is_gone
}
close_socket() {
  [ ! -e /run/flashweir.manager ] || kill -TERM "$(cat /run/flashweir.manager)"
  rm -f /run/flashweir.manager
}
reload() {
  MAINPID=$(cat /run/flashweir.pid)
  export MAINPID
  setting ExecReload | while read -r command; do sh -ec "$command"; done
}

verb=$1
shift
for name; do
  case $verb:$name in
    *:--*) ;;
    restart:nginx | restart:nginx.service) nginx -s stop 2>/dev/null || true; until_true nginx ;;
    enable:flashweir.socket | start:flashweir.socket) open_socket ;;
    enable:flashweir* | start:flashweir*) start ;;
    try-restart:flashweir*) ! is_running || { stop; start; } ;;
    restart:flashweir*) stop; start ;;
    reload:flashweir*) reload ;;
    disable:flashweir.socket) close_socket ;;
    disable:flashweir* | stop:flashweir*) stop ;;
    *) echo "systemctl $verb $name: not what docs/install.md does" >&2; exit 1 ;;
  esac
done
