# Sourced in the repository's root by the scripts beside it: VERSION, ARCH (as Debian and container images name it) and
# SOURCE_DATE_EPOCH, the time of every file that is made.
VERSION=${VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)}
case $(uname -m) in
  x86_64) ARCH=amd64 ;;
  aarch64) ARCH=arm64 ;;
  *) ARCH=$(uname -m) ;;
esac
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export VERSION ARCH SOURCE_DATE_EPOCH
