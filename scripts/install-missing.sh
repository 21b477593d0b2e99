#!/bin/sh
# Installs the Debian packages whose programs (or files, if a path is given) are missing:
# install-missing.sh PROGRAM=PACKAGE... /PATH=PACKAGE...
# Nothing missing: no package manager is started and no rights are needed.
set -eu

packages=
for pair in "$@"; do
  program=${pair%%=*}
  command -v "$program" >/dev/null 2>&1 || [ -x "/usr/sbin/$program" ] ||
    { [ "${program#/}" != "$program" ] && [ -e "$program" ]; } || packages="$packages ${pair#*=}"
done
[ -n "$packages" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
  echo "install-missing: please install:$packages" >&2
  exit 1
fi
as_root=
if [ "$(id -u)" -ne 0 ]; then as_root=sudo; fi
echo "installing:$packages" >&2
# A server's package would start the server; ours are started by the tests, on ports of their own.
$as_root sh -c 'printf "#!/bin/sh\nexit 101\n" > /usr/sbin/policy-rc.d.flashweir && chmod +x /usr/sbin/policy-rc.d.flashweir
  [ -e /usr/sbin/policy-rc.d ] || { ln -s policy-rc.d.flashweir /usr/sbin/policy-rc.d; touch /usr/sbin/policy-rc.d.ours; }'
trap '$as_root sh -c "[ ! -e /usr/sbin/policy-rc.d.ours ] || rm -f /usr/sbin/policy-rc.d /usr/sbin/policy-rc.d.ours; rm -f /usr/sbin/policy-rc.d.flashweir"' EXIT
$as_root apt-get update -qq
# shellcheck disable=SC2086  # a list of packages
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $packages >/dev/null
