#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Installs the package in a clean Debian root, uses it, upgrades it under a running mount, removes and purges it:
# package-test.sh [--short] [PACKAGE.deb]
# As root. The root is of this machine's Debian release; it is made once by mmdebstrap and kept in .build/package-test. All
# happens in namespaces of its own: when they end, so do all of their processes and mounts. With --short the root is this
# machine's own, with a layer above it that takes all changes and goes at the end: that needs no network and no minute, and
# does not show what the package lacks that this machine has.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { printf 'package-test: %s\n' "$*" >&2; exit 1; }
[ "$(id -u)" -eq 0 ] || fail "this requires root"
short=
if [ "${1:-}" = --short ]; then
  short=yes
  shift
fi
# The one that was built last; 'ls' is enough for names that are our own.
package=${1:-$(ls -t .build/deb/insula_*.deb 2>/dev/null | head -n 1)}
[ -f "$package" ] || fail "there is no package; 'make deb' builds it"
# shellcheck source=/dev/null
release=$(. /etc/os-release && [ "$ID" = debian ] && printf '%s' "$VERSION_CODENAME") || fail "this machine is no Debian"

place=$PWD/.build/package-test
mkdir -p "$place"
work=$(mktemp -d "$place/work.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT

# make_root : a new root of what the package depends on, so that installing the package needs no network.
make_root() {
  needs=$(dpkg-deb -f "$package" Depends | sed 's/([^)]*)//g; s/|[^,]*//g; s/ //g')
  includes=$needs,mount,systemd
  kept=$place/root-$release-$(printf '%s' "$includes" | sha256sum | cut -c 1-12).tar
  if [ ! -f "$kept" ]; then
    command -v mmdebstrap >/dev/null || fail "this requires mmdebstrap"
    timeout --kill-after=30 900 mmdebstrap --quiet --variant=apt --include="$includes" "$release" "$work/new.tar"
    mv "$work/new.tar" "$kept"
  fi
  mkdir "$work/root"
  tar -C "$work/root" -xf "$kept"
}
mkdir -p "$work/packages"
[ -n "$short" ] || make_root

# repack VERSION [SCRIPT] : the same package with another version, and with what a script makes of its files.
repack() {
  dpkg-deb -R "$package" "$work/package"
  sed -i "s/^Version: .*/Version: $1/" "$work/package/DEBIAN/control"
  if [ $# -gt 1 ]; then (cd "$work/package" && sh -euc "$2"); fi
  dpkg-deb --root-owner-group -Znone -b "$work/package" "$work/packages/insula_$1.deb" >/dev/null
  rm -rf "$work/package"
}
cp "$package" "$work/packages/insula_first.deb"
repack 99.1
# A program that can't take over from the one that is running.
repack 99.2 'mv usr/bin/insula usr/bin/insula.real
  printf "%s\n" "#!/bin/sh" "case \"\$*\" in *can-take-over*) exit 1 ;; esac" "exec /usr/bin/insula.real \"\$@\"" >usr/bin/insula
  chmod 755 usr/bin/insula'
cp Tests/Package/inside.sh "$work/packages/inside.sh"

# No new user namespace can be made in a chroot, so the root is changed instead. The child is ended with what started it.
# shellcheck disable=SC2016 # the inner shell expands it
timeout --kill-after=10 "${INSULA_TEST_LIMIT:-240}" unshare --mount --pid --fork --kill-child --propagation private sh -euc '
  root=$1/root
  mkdir -p "$root"
  if [ -n "$2" ]; then
    mount -t tmpfs tmpfs "$root"
    mkdir "$root/upper" "$root/work" "$root/merged"
    mount -t overlay -o "lowerdir=/,upperdir=$root/upper,workdir=$root/work" overlay "$root/merged"
    root=$root/merged
    # Where the package keeps things, filesystems of their own: a layer has no handles of files.
    mkdir -p "$root/var/lib/insula"
    mount -t tmpfs -o mode=755 tmpfs "$root/home"
    mount -t tmpfs -o mode=700 tmpfs "$root/var/lib/insula"
    mount -t tmpfs -o mode=700 tmpfs "$root/root"
  else
    mount --bind "$root" "$root"
  fi
  cp "$1"/packages/* "$root/root"
  cd "$root"
  mount -t proc proc proc
  mount --bind -o ro /sys sys
  mount -t tmpfs -o mode=755 tmpfs dev
  mkdir dev/shm dev/pts
  for name in null zero full random urandom tty fuse; do touch dev/$name; mount --bind /dev/$name dev/$name; done
  ln -s /proc/self/fd dev/fd
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
  ln -s pts/ptmx dev/ptmx
  mount -t tmpfs -o mode=755 tmpfs run
  mount -t tmpfs -o mode=1777 tmpfs tmp
  pivot_root . mnt
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    sh -euc "cd /; umount -l /mnt; exec sh /root/inside.sh"
' sh "$work" "$short" </dev/null
