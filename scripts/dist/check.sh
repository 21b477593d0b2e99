#!/bin/sh
# Makes dist/ again, from the commit alone, in other folders, and compares all bytes: check.sh TOOLS FOLDER.
set -eu
tools=$(realpath "$1")
folder=$(realpath "$2")
cd "$(dirname "$0")/../.."
if [ -n "$(git status --porcelain)" ]; then
  echo "check: the tree has changes that are not committed; what is compared is the commit" >&2
fi
again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
mkdir "$again/tree"
git archive HEAD | tar --extract --directory "$again/tree"
"$again/tree/scripts/dist/dist.sh" "$tools" "$again/target" "$again/dist" >&2
if ! cmp "$folder/SHA256SUMS" "$again/dist/SHA256SUMS"; then
  diff "$folder/SHA256SUMS" "$again/dist/SHA256SUMS" >&2 || true
  exit 1
fi
echo "made twice, the same bytes: $(wc -l <"$folder/SHA256SUMS") files"
