#!/bin/sh
# Builds the control plane of the Kubernetes tests from Go modules and prints where it is: testplane.sh [FOLDER]. Once for each machine: the
# folder is a cache beside Go's own, keyed by the pinned modules, so that a clean checkout builds nothing. Cold it takes 70 s of downloads and
# 13 minutes of processor time (7 to 9 minutes on two idle cores), 2.3 GB of memory and 5 GB of disk; with Go's cache warm 15 s.
# FLASHWEIR_TESTPLANE_ONLY=cached prints the path if it is built and builds nothing.
set -eu
here=$(dirname "$(realpath "$0")")/testplane
version=$(sed -n 's/^\tk8s.io\/kubernetes v//p' "$here/go.mod")
key=$(cat "$here/go.mod" "$here/go.sum" "$here/main.go" | sha256sum | cut -c1-16)
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/flashweir/testplane-$key}
binary=$folder/testplane
if [ -x "$binary" ]; then echo "$binary"; exit 0; fi
[ "${FLASHWEIR_TESTPLANE_ONLY:-}" != cached ] || exit 0
command -v go >/dev/null || { echo "testplane: Go is missing; the Kubernetes tests will say that they are skipped" >&2; exit 0; }

minor=${version#1.}
minor=${minor%%.*}
flags=
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  # Without these the server reports v0.0.0-master, and clients refuse it.
  flags="$flags -X $package.gitVersion=v$version -X $package.gitMajor=1 -X $package.gitMinor=$minor"
done
mkdir -p "$folder"
echo "testplane: building Kubernetes $version from Go modules; cold this takes a quarter of an hour" >&2
if ! (cd "$here" && CGO_ENABLED=0 go build -mod=readonly -trimpath -ldflags "-s -w $flags" -o "$binary.part" .) >&2; then
  rm -f "$binary.part"
  echo "testplane: cannot be built; the Kubernetes tests will say that they are skipped" >&2
  exit 0
fi
# Moved when it is whole: a build that was interrupted leaves nothing that looks finished.
mv "$binary.part" "$binary"
echo "$binary"
