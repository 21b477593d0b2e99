#!/bin/sh
# Installs the Autobahn test suite for WebSocket into a folder, once: autobahn.sh FOLDER. It is a program for Python 2.7, of which
# FOLDER/python2 will be a link; the suite's other packages are pinned beside this script.
set -eu
here=$(dirname "$(realpath "$0")")
folder=$(realpath -m "$1")
[ ! -e "$folder/complete" ] || exit 0
python=
# pyenv keeps what it has built in its own folder, and its `python2.7` answers only where that version is selected.
for candidate in python2.7 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/2.7.*/bin/python2.7; do
  if "$candidate" -m pip --version >/dev/null 2>&1; then
    python=$("$candidate" -c 'import sys; print(sys.executable)')
    break
  fi
done
if [ -z "$python" ]; then
  reason="conformance-autobahn: Python 2.7 with pip is missing (Debian has none since 12; pyenv builds one)"
  # As for tests: a skip that is expected is no failure.
  if [ -n "${EXPECTED_SKIPS:-}" ] && echo "$reason" | grep -qxE "$(grep -v -e '^#' -e '^$' "$EXPECTED_SKIPS")"; then
    echo "Skipped: $reason"
    exit 0
  fi
  echo "the Autobahn test suite cannot be installed: $reason" >&2
  exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
rm -rf "$folder"
mkdir -p "$folder"
# Without the packages' dependencies: the list is complete, and those of the suite's parts for load tests are left out.
if ! "$python" -m pip install --disable-pip-version-check --quiet --no-deps --target "$folder" \
  --requirement "$here/conformance/autobahn-requirements.txt" >"$log" 2>&1; then
  tail -3 "$log" >&2
  echo "the Autobahn test suite cannot be installed: pip says why above" >&2
  exit 1
fi
# A namespace package in a folder that is no site directory; Python 2 finds it only with this file.
touch "$folder/zope/__init__.py"
ln -s "$python" "$folder/python2"
touch "$folder/complete"
