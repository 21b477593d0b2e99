#!/bin/sh
# Runs the program of an OCI image as a container engine would, as far as that goes without one: try-image.sh ARCHIVE. The root is
# read-only, the user that of the image, without capabilities, in separate namespaces. Needs root and umoci.
set -eu
if [ "${IN_NAMESPACES:-}" != 1 ]; then
  exec env IN_NAMESPACES=1 unshare --mount --net --pid --ipc --uts --fork --kill-child --mount-proc "$0" "$@"
fi
archive=$(realpath "$1")
work=$(mktemp -d)
rootfs=$work/bundle/rootfs
end() {
  umount "$rootfs" 2>/dev/null || true
  rm -rf "$work"
}
trap end EXIT
fail() { echo "try-image: $*" >&2; exit 1; }

size=$(stat -c %s "$archive")
echo "image: $size bytes"
[ "$size" -le 20000000 ] || fail "larger than 20 MB"
mkdir "$work/image"
tar --extract --file "$archive" --directory "$work/image"
tag=$(sed -n 's/.*"org.opencontainers.image.ref.name":"\([^"]*\)".*/\1/p' "$work/image/index.json")
umoci unpack --image "$work/image:$tag" "$work/bundle" >/dev/null
files=$(cd "$rootfs" && find . -type f)
[ "$files" = ./usr/bin/flashweir ] || fail "files in the image: $files"
# What an engine gets from the image's configuration.
user=$(tr -d " \n\t" <"$work/bundle/config.json" | sed "s|.*\"uid\":\([0-9]*\),.*|\1|")
[ "$user" = 65532 ] || fail "the image's user is $user"
mount --bind "$rootfs" "$rootfs"
mount -o remount,bind,ro "$rootfs"
ip link set lo up

in_container() {
  # As a container engine leaves the environment: that of the image.
  env --ignore-environment PATH="$PATH" \
  setpriv --no-new-privs --inh-caps=-all --bounding-set=-all,+setuid,+setgid,+sys_chroot \
    chroot --userspec=65532:65532 --groups= "$rootfs" /usr/bin/flashweir "$@"
}
in_container --version
mkdir "$work/pages"
echo "a page" >"$work/pages/index.html"
python3 -m http.server --bind 127.0.0.1 --directory "$work/pages" 3000 >/dev/null 2>&1 &
in_container run --upstream http://localhost:3000 --listen 0.0.0.0:8080 &
gateway=$!
for _ in $(seq 100); do
  page=$(curl --silent --fail http://127.0.0.1:8080/) && break
  sleep 0.1
done
[ "${page:-}" = "a page" ] || fail "no page through the gateway"
process=$(pgrep --full '^/usr/bin/flashweir run')
awk '/^(Uid|CapEff|CapBnd|NoNewPrivs)/' "/proc/$process/status"
awk '/^CapEff/ { exit $2 != "0000000000000000" }' "/proc/$process/status" || fail "the program has capabilities"
kill -TERM "$process"
wait "$gateway" || fail "the program did not end in order"
echo "the image's program answered, as user 65532, on a read-only root"
