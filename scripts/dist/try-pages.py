#!/usr/bin/env python3
"""Follows the pages of docs/start in fresh roots with systemd: try-pages.py ROOT NFPM BINARY [NAME...]. Needs root.

Each case is a root of its own (an overlay of ROOT, pages-root.sh) in namespaces of its own, in which systemd starts the real units. A
script in pages/ makes the server of before; then the blocks of the named sections are followed in their order: a block that begins with
a file's name is written there, a block for a shell is run and must succeed. A command of ours checks the end."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs"
VIA = "curl -ski {} | grep -qi '^via: 1.1 flashweir'"
HTTP, HTTPS = VIA.format("http://shop.example/"), VIA.format("https://shop.example/")
NO_PORT = "! curl -ski {}/dir | grep -i '^location:.*:80[0-9][0-9]'"
CLIENT = "curl -sk --interface 127.0.0.9 --connect-to ::127.0.0.1: {}/ | grep -q REMOTE_ADDR=127.0.0.9"
GONE = "! " + HTTP
# Name, script, [page, sections], checks.
CASES = [
    ("nginx-proxy", "nginx-proxy", [("start/nginx.md", ["1."])], [HTTP]),
    ("nginx-out", "nginx-proxy", [("start/nginx.md", ["1."]), ("start/take-it-out.md", ["Behind nginx", "Take the"])], [GONE]),
    ("nginx-tls", "nginx-pages", [("start/nginx.md", ["2."])],
     [HTTPS, NO_PORT.format("https://shop.example"), CLIENT.format("https://shop.example")]),
    ("nginx-80", "nginx-default", [("install.md", ["Install before"]), ("start/nginx.md", ["3."])],
     [HTTP, NO_PORT.format("http://shop.example")]),
    ("apache-80", "apache-pages", [("start/apache.md", ["1."])],
     [HTTP, NO_PORT.format("http://shop.example"), CLIENT.format("http://shop.example")]),
    ("apache-80-out", "apache-pages", [("start/apache.md", ["1."]), ("start/take-it-out.md", ["On port"])], [GONE]),
    ("apache-tls", "apache-tls", [("start/apache.md", ["2."])],
     [HTTPS, NO_PORT.format("https://shop.example"), CLIENT.format("https://shop.example")]),
    ("apache-out", "apache-proxy", [("start/apache.md", ["3."]), ("start/take-it-out.md", ["Behind Apache"])], [GONE]),
    ("application", "app", [("start/application.md", ["Install"])], [HTTP]),
    ("tls", "acme", [("start/tls.md", ["The page", "Install", "The cert", "certbot", "Start"])], [HTTPS]),
    ("balancer", "balancer",
     [("start/behind-a-load-balancer.md", ["Install"]), ("start/shadow-to-live.md", ["Live", "Each day live", "Back"])],
     ["sed -i 's/shop.example/other/; $a 192.0.2.7 shop.example' /etc/hosts; systemctl start haproxy; sleep 1",
      "curl -s --interface 192.0.2.8 -H 'Forwarded: for=203.0.113.9' http://shop.example/; sleep 1",
      "tail -n 1 /var/log/flashweir/access.log | grep '\"client\":\"192.0.2.8\"'"]),
]


def blocks(page, sections):
    """Language and text of each block under a heading that begins with one of these."""
    heading, inside, language, text = "", False, "", []
    for line in (DOCS / page).read_text().splitlines(keepends=True):
        if line.startswith("```"):
            if inside and any(heading.startswith(name) for name in sections):
                yield language, "".join(text)
            inside, language, text = not inside, line[3:].strip(), []
        elif inside:
            text.append(line)
        elif line.startswith("#"):
            heading = line.strip("# \n")


def boot(root, folder):
    """Starts systemd in an overlay of `root`; returns the process of unshare and the id of systemd."""
    inner = f"""set -eu
mount --make-rprivate /
mkdir -p {folder}/upper {folder}/work {folder}/root
mount -t overlay overlay -o lowerdir={root},upperdir={folder}/upper,workdir={folder}/work {folder}/root
cd {folder}/root
mount -t proc proc proc; mount -t sysfs sysfs sys; mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run; mount -t tmpfs tmpfs tmp; mount -t tmpfs -o mode=755 dev dev
for name in null zero full random urandom tty; do touch dev/$name; mount --bind /dev/$name dev/$name; done
mkdir dev/pts dev/shm; mount -t devpts devpts dev/pts -o newinstance,ptmxmode=0666; ln -s pts/ptmx dev/ptmx; mount -t tmpfs tmpfs dev/shm
ln -s /proc/self/fd dev/fd; ln -s fd/0 dev/stdin; ln -s fd/1 dev/stdout; ln -s fd/2 dev/stderr
ip link set lo up
for address in 192.0.2.7 192.0.2.8 10.0.0.10 10.0.0.20; do ip addr add $address/32 dev lo; done
hostname pages; mkdir -p .old; pivot_root . .old; umount -l /.old
exec env -i container=pages PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --show-status=no
"""
    group = next((Path(mount) for mount in ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"] if (Path(mount) / "cgroup.procs").exists()))
    group = group / f"pages-{os.getpid()}"
    group.mkdir(exist_ok=True)
    namespaces = ["unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child=SIGKILL"]
    enter = f"echo $$ >{group}/cgroup.procs; exec " + " ".join(namespaces) + ' sh -c "$0"'
    outer = subprocess.Popen(["sh", "-c", enter, inner], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True)
    for _ in range(100):
        time.sleep(0.1)
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()
        if children and Path(f"/proc/{children[0]}/comm").read_text().startswith("systemd"):
            time.sleep(1.5)
            return outer, children[0], group
    raise SystemExit("try-pages: systemd did not start")


def remove(group):
    """Removes a control group and those that systemd made in it, once the last process has ended."""
    for _ in range(100):
        try:
            for folder, _, _ in os.walk(group, topdown=False):
                os.rmdir(folder)
            return
        except OSError:
            time.sleep(0.1)


def follow(name, script, pages, checks, root, package):
    with tempfile.TemporaryDirectory() as folder:
        outer, init, group = boot(root, folder)

        def run(command, text=None):
            enter = ["nsenter", "-t", init, "-m", "-n", "-p", "-u", "-i", "-C", "-r", "-w", "env", "-i", "HOME=/root", "LC_ALL=C.UTF-8",
                     "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "bash", "-c", f"cd /root; {command}"]
            done = subprocess.run(enter, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
            return done.returncode, done.stdout.decode(errors="replace")

        def must(command, what, text=None):
            code, output = run(command, text)
            if code:
                raise SystemExit(f"try-pages: {name}: {what}: exit code {code}\n{output}")

        try:
            must("cat >flashweir_0.1.0-1_amd64.deb", "package", package.read_bytes())
            for file in (HERE / "pages").iterdir():
                must(f"mkdir -p pages; cat >pages/{file.name}", "script", file.read_bytes())
            must(f"bash -e pages/{script}.sh", script)
            for page, sections in pages:
                for language, text in blocks(page, sections):
                    first = re.match(r"# (/\S+)\n", text)
                    if language == "sh":
                        must("bash -ex", f"{page}: {text}", text.encode())
                    elif first and language in ("toml", "nginx", "apache", "ini"):
                        must(f"mkdir -p $(dirname {first[1]}); cat >{first[1]}", first[1], text.encode())
            for check in checks:
                must(check, f"afterwards: {check}")
        finally:
            os.kill(int(init), signal.SIGKILL)
            outer.wait()
            remove(group)
    print(f"{name}: {', '.join(page for page, _ in pages)}", flush=True)


def main():
    root, nfpm, binary, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        make = [HERE / "packages.sh", nfpm, binary, folder]
        subprocess.run(make, check=True, env={**os.environ, "COMPRESSION": "gzip"}, stderr=subprocess.DEVNULL)
        package = next(Path(folder).glob("*.deb"))
        for case in CASES:
            if not names or case[0] in names:
                follow(*case, os.path.realpath(root), package)


main()
