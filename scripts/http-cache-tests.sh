#!/bin/sh
# Installs the HTTP caching tests (npm package `http-cache-tests`) into a folder, once: http-cache-tests.sh FOLDER.
set -eu
version=0.4.5
folder=$(realpath -m "$1")
[ ! -e "$folder/node_modules/http-cache-tests/cli.mjs" ] || exit 0
mkdir -p "$folder"
# The package's dependency `npm` is not used: without scripts nothing of it runs.
if ! npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund --no-package-lock --silent "http-cache-tests@$version"; then
  echo "the HTTP caching tests cannot be installed: npm says why above" >&2
  exit 1
fi
