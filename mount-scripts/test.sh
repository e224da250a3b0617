#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Runs all tests: mount-scripts/test.sh [ARGUMENTS OF swift test]
# The last line is the test runner's own, and so is the exit status. Before it, what failed is told once more:
# who has only the end of some thousand lines must find it there.
set -euo pipefail
cd "$(dirname "$0")/.."
. mount-scripts/need.sh

need_swift
need_packages pkg-config=pkg-config libfuse3-dev=@fuse3 libssl-dev=@libcrypto libsqlite3-dev=@sqlite3 fuse3=fusermount3 bubblewrap=bwrap acl=setfacl borgbackup=borg "libtagc0=/usr/lib/$(uname -m)-linux-gnu/libtag_c.so.0" attr=getfattr e2fsprogs=mkfs.ext4 \
  sqlite3=sqlite3 rsync=rsync git=git gcc=gcc make=make cpio=cpio nfs4-acl-tools=nfs4_getfacl fio=fio stress-ng=stress-ng openssl=openssl python3=python3 \
  vim=vim strace=strace zsh=zsh fish=fish xvfb=Xvfb xterm=xterm tmux=tmux screen=screen xauth=xauth x11-apps=xlogo x11-utils=xwininfo dbus=dbus-daemon xdg-dbus-proxy=xdg-dbus-proxy \
  restic=restic libglib2.0-bin=gio trash-cli=trash-put python3-dbus=/usr/lib/python3/dist-packages/dbus/__init__.py python3-gi=/usr/lib/python3/dist-packages/gi/__init__.py \
  python3-dbusmock=/usr/lib/python3/dist-packages/dbusmock/__init__.py \
  shared-mime-info=/usr/share/mime/globs2 samba-common-bin=testparm openssh-server=/usr/sbin/sshd openssh-client=ssh sshfs=sshfs rclone=rclone gocryptfs=gocryptfs ntfs-3g=ntfs-3g exfat-fuse=mount.exfat-fuse exfatprogs=mkfs.exfat fuse2fs=fuse2fs xfsprogs=mkfs.xfs btrfs-progs=mkfs.btrfs xdg-utils=xdg-open libfile-mimeinfo-perl=mimetype desktop-file-utils=update-desktop-database

# A run that hangs says where, and ends. The pipe's other end closes with this script, and then there is nothing to say.
limit=${INSULA_TEST_LIMIT:-4500}
exec 9> >(read -r -t "$limit" || [ $? -le 128 ] || exec mount-scripts/hanging.sh "$$" "$limit")

# The tests start some ten thousand programs: what all of them run through is optimized (see Package.swift).
export INSULA_QUICK_TESTS=1
# Without what debuggers read there is less to compile and to link.
swift test -debug-info-format none --explicit-target-dependency-import-check error "$@" 2>&1 9>&- | awk '
  function tellFailures() { if (failures != "") printf "\nWhat failed:\n%s\n", failures; failures = "" }
  { belongs = / recorded an issue / || (belongs && /^(↳|  )/) }
  belongs { failures = failures $0 "\n" }
  / Test run with [0-9]+ tests? / { tellFailures() }
  { print; fflush() }
  END { tellFailures() }'
