#!/bin/sh
# Follows docs/install.md in a fresh Debian root: try-packages.sh ROOT-ARCHIVE NFPM BINARY. Needs root. Everything happens in
# separate namespaces of network, mounts and processes, and ends with them.
set -eu
if [ "${IN_NAMESPACES:-}" != 1 ]; then
  exec env IN_NAMESPACES=1 unshare --mount --net --pid --fork --kill-child --mount-proc "$0" "$@"
fi
archive=$(realpath "$1")
nfpm=$(realpath "$2")
binary=$(realpath "$3")
here=$(dirname "$(realpath "$0")")
page=$here/../../docs/install.md
work=$(mktemp -d)
end() {
  [ ! -e "$root/run/flashweir.log" ] || [ "$1" -eq 0 ] || cat "$root/run/flashweir.log" >&2
  umount "$root/proc" 2>/dev/null || true
  rm -rf "$work"
}
root=$work/root
trap 'end $?' EXIT

# The commands of a section of the page: its blocks for a shell.
commands() {
  awk -v section="## $1" '/^## / { inside = $0 == section } /^```/ { block = inside && $0 == "```sh"; next } block' "$page"
}
follow() {
  commands "$1" >"$root/root/commands"
  [ -s "$root/root/commands" ] || { echo "try-packages: no commands under $1" >&2; exit 1; }
  echo "== $1"
  chroot "$root" /bin/sh -c 'cd /root && exec /bin/sh -ex commands'
}
fail() { echo "try-packages: $*" >&2; exit 1; }

mkdir "$root"
tar --extract --file "$archive" --directory "$root"
mount -t proc proc "$root/proc"
ip link set lo up
COMPRESSION=gzip "$here/packages.sh" "$nfpm" "$binary" "$work"
VERSION=0.1.1 COMPRESSION=gzip "$here/packages.sh" "$nfpm" "$binary" "$work"
cp "$work"/*.deb "$root/root/"
# Names on the page are of this kind of machine.
for package in "$root"/root/*.deb; do
  wanted=$(echo "$package" | sed 's/_[^_]*\.deb$/_amd64.deb/')
  [ "$package" = "$wanted" ] || mv "$package" "$wanted"
done
install -m 0755 "$here/systemctl.sh" "$root/usr/bin/systemctl"
install -D -m 0755 "$here/manager.pl" "$root/usr/local/lib/manager.pl"
mkdir -p "$root/run/systemd/system"
# The protected service, as it was before.
chroot "$root" nginx

begun=$(date +%s%N)
follow "Install before nginx"
echo "installed and protecting nginx within $((($(date +%s%N) - begun) / 1000000)) ms"
process=$(cat "$root/run/flashweir.pid")
user=$(stat -c %u "/proc/$process")
[ "$user" = "$(chroot "$root" id -u flashweir)" ] || fail "the service runs as user $user"
awk '/^VmRSS/ { print "resident after the first request: " $2 " kB" }' "/proc/$process/status"
curl --fail --silent http://127.0.0.1:9900/metrics | grep -q '^flashweir_' || fail "no metrics"

# Clients that connect for each request, one after the other, while packages are replaced.
for client in 1 2 3; do
  while [ ! -e "$work/over" ]; do
    curl --silent --max-time 30 --output /dev/null --write-out '%{http_code}\n' http://127.0.0.1/ || echo dropped
  done >"$work/answers.$client" &
done
follow "Upgrade without a dropped connection"
[ "$process" != "$(cat "$root/run/flashweir.pid")" ] || fail "the upgrade did not restart the service"
process=$(cat "$root/run/flashweir.pid")
follow "Roll back"
[ "$process" != "$(cat "$root/run/flashweir.pid")" ] || fail "the rollback did not restart the service"
chroot "$root" dpkg-query --show flashweir | grep -q '0\.1\.0-1$' || fail "not rolled back"
sleep 1
touch "$work/over"
wait
echo "answers during the upgrade and the rollback: $(sort "$work"/answers.* | uniq -c | tr -s '\n ' ' ')"
! grep -qv '^200$' "$work"/answers.* || fail "connections were dropped or refused"
[ "$(cat "$work"/answers.* | wc -l)" -ge 100 ] || fail "too few requests to say that none is dropped"

# A version that does not know the configuration leaves the process that runs.
process=$(cat "$root/run/flashweir.pid")
cp "$root/etc/flashweir/flashweir.toml" "$work/flashweir.toml"
echo 'future = true' >>"$root/etc/flashweir/flashweir.toml"
follow "Upgrade without a dropped connection"
[ "$process" = "$(cat "$root/run/flashweir.pid")" ] || fail "restarted with a configuration that is wrong"
cp "$work/flashweir.toml" "$root/etc/flashweir/flashweir.toml"

follow "Remove"
for path in usr/bin/flashweir etc/flashweir var/lib/flashweir usr/lib/systemd/system/flashweir.service; do
  [ ! -e "$root/$path" ] || fail "/$path is left"
done
! kill -0 "$process" 2>/dev/null || fail "the process is left"
echo "every command of docs/install.md did what it says"
