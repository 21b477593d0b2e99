#!/bin/sh
# Makes a Debian root with systemd and the servers of docs/start, once: pages-root.sh FOLDER. Needs root; three minutes, and 1 GB.
set -eu
root=$(realpath -m "$1")
[ ! -e "$root/complete" ] || exit 0
[ "$(id -u)" -eq 0 ] || { echo "pages-root: not root" >&2; exit 1; }
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
rm -rf "$root"
packages=systemd,systemd-sysv,dbus,iproute2,openssl,ca-certificates,curl,nginx-light,apache2,libapache2-mod-php,php-fpm
mmdebstrap --quiet --variant=minbase --include=$packages,nodejs,certbot,pebble,haproxy,libelf1 "$release" "$root"
cd "$root/etc/systemd/system"
for unit in systemd-resolved.service getty.target console-getty.service systemd-udevd.service certbot.timer apt-daily.timer; do
  ln -sf /dev/null $unit
done
rm -f multi-user.target.wants/nginx.service multi-user.target.wants/apache2.service multi-user.target.wants/haproxy.service \
  multi-user.target.wants/php8.2-fpm.service
printf '127.0.0.1 localhost shop.example\n' >"$root/etc/hosts"
touch "$root/complete"
