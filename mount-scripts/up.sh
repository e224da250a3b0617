#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Builds insula, makes a store if there is none, mounts it and shows it: mount-scripts/up.sh [STORE [MOUNTPOINT]]
# Without arguments: as root /var/lib/insula at /insula, else ~/.local/share/insula at ~/Insula.
set -eu
cd "$(dirname "$0")/.."
. mount-scripts/need.sh

need_swift
need_packages pkg-config=pkg-config libfuse3-dev=@fuse3 libssl-dev=@libcrypto libsqlite3-dev=@sqlite3 fuse3=fusermount3 bubblewrap=bwrap

flags=$(release_flags)
say "Building (the first time takes some minutes) ..."
# shellcheck disable=SC2086 # several words on purpose
swift build $flags --product insula
# shellcheck disable=SC2086
insula=$(swift build $flags --show-bin-path)/insula

# Without a name it is one's own store that is meant, also where root's is mounted.
store=${1:-}
[ -n "$store" ] || [ "$(id -u)" -eq 0 ] || store=${XDG_DATA_HOME:-$HOME/.local/share}/insula

# status says it all: 0 mounted, 4 no store, 6 not mounted.
state=0
"$insula" status ${store:+"$store"} >/dev/null 2>&1 || state=$?
case $state in
  0) say "The store is already mounted." ;;
  4) "$insula" init ${1:+"$1"} && "$insula" mount "$@" ;;
  *) "$insula" mount "$@" ;;
esac

say
"$insula" status ${store:+"$store"}
mountpoint=$("$insula" status --json ${store:+"$store"} | sed -n 's/^ *"mountPoint" : "\(.*\)",*$/\1/p')
say
say "The tree:"
ls -l "$mountpoint"
say
say "Use $mountpoint like any directory. To unmount it: mount-scripts/down.sh${1:+ $1}"
directory=$(dirname "$insula")
if [ "$(command -v insula || true)" != "$insula" ]; then
  say "To add insula to your PATH for this shell ('make install' installs it permanently):"
  say
  say "  export PATH=\"$directory:\$PATH\""
  say
fi
say "'insula help' lists the commands. The store is mounted: continue the README's tour with 'insula user add'."
