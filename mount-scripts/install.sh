#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# What 'make install' and 'make uninstall' do: install.sh install|uninstall
# The Makefile gives the places; INSULA is the program that was built. What takes root is left out where an ordinary user
# installs for themselves, and said: the helper of mount(8), which is looked for in one directory, and the machine's unit.
set -eu
cd "$(dirname "$0")/.."

DESTDIR=${DESTDIR:-}
# Shells other than bash don't expand the tilde in 'make install PREFIX=~/.local'.
case ${PREFIX:-} in "~") PREFIX=$HOME ;; "~/"*) PREFIX=$HOME/${PREFIX#"~/"} ;; esac
case ${PREFIX:-} in
  /*) ;;
  *) echo "install: PREFIX must be an absolute path, not '${PREFIX:-}'" >&2; exit 2 ;;
esac
BINDIR=${BINDIR:-$PREFIX/bin}
SBINDIR=${SBINDIR:-/usr/sbin}
UNITDIR=${UNITDIR:-$PREFIX/lib/systemd/system}
BASHDIR=${BASHDIR:-$PREFIX/share/bash-completion/completions}
ZSHDIR=${ZSHDIR:-$PREFIX/share/zsh/site-functions}
FISHDIR=${FISHDIR:-$PREFIX/share/fish/vendor_completions.d}
USERUNITDIR=${USERUNITDIR:-$PREFIX/lib/systemd/user}
MANDIR=${MANDIR:-$PREFIX/share/man}
LIBDIR=${LIBDIR:-$PREFIX/lib}
INCLUDEDIR=${INCLUDEDIR:-$PREFIX/include}

# Whether this user may write to a directory, or make it.
is_open() {
  place=$1
  while [ ! -e "$place" ]; do place=$(dirname "$place"); done
  [ -d "$place" ] && [ -w "$place" ]
}

# A unit mounts the machine's store, and systemd reads it as root's.
is_for_all() { [ -n "$DESTDIR" ] || [ "$(id -u)" -eq 0 ]; }

# mount(8) looks for a helper by the type, which is either of these.
helper=$DESTDIR$SBINDIR/mount.fuse.insula
shorthelper=$DESTDIR$SBINDIR/mount.insula
unit=$DESTDIR$UNITDIR/insula.service
# systemd reads the units of a user's own in ~/.local/share as well.
case $PREFIX in "${HOME:-/root}/.local") USERUNITDIR=$PREFIX/share/systemd/user ;; esac
userunit=$DESTDIR$USERUNITDIR/insula.service
agentunit=$DESTDIR$USERUNITDIR/insula-agent.service

# The backup's service and timer, which are the same for the machine and for a user.
install_backup_units() { for kind in service timer; do filled "mount-scripts/insula-backup.$kind" | put "$1/insula-backup.$kind" 644; done; }
# What locks encrypted volumes: the machine's before it sleeps, a user's when their session ends.
install_lock_unit() { filled "mount-scripts/$1.service" | put "$2/insula-lock.service" 644; }
remove_backup_units() { rm -f "$1/insula-backup.service" "$1/insula-backup.timer"; }

# Puts what is read from standard input at a path, with a mode.
put() {
  install -d "$(dirname "$1")"
  # A new file: whoever runs or reads the old one keeps it whole.
  new=$1.new.$$
  { cat >"$new" && chmod "$2" "$new" && mv -f "$new" "$1"; } || { rm -f "$new"; return 1; }
}

filled() {
  quoted() { printf '%s' "$1" | sed 's/[&|\\]/\\&/g'; }
  sed -e "s|@BINDIR@|$(quoted "$BINDIR")|g" -e "s|@LIBDIR@|$(quoted "$LIBDIR")|g" \
    -e "s|@INCLUDEDIR@|$(quoted "$INCLUDEDIR")|g" -e "s|@VERSION@|$("$INSULA" version | sed 's/^insula //')|g" "$1"
}

# The library for programs that run as apps: C, without dependencies.
install_library() {
  objects=$(mktemp -d)
  for file in Sources/CInsula/*.c; do
    "$cc" -std=c11 -D_GNU_SOURCE -O2 -fPIC -ISources/CInsula/include -c "$file" -o "$objects/$(basename "$file" .c).o" ||
      { rm -rf "$objects"; return 1; }
  done
  "$ar" rcD "$objects/libinsula.a" "$objects"/*.o
  put "$DESTDIR$LIBDIR/libinsula.a" 644 <"$objects/libinsula.a"
  put "$DESTDIR$INCLUDEDIR/insula.h" 644 <Sources/CInsula/include/insula.h
  filled mount-scripts/insula.pc | put "$DESTDIR$LIBDIR/pkgconfig/insula.pc" 644
  rm -rf "$objects"
}

# The pages of the manual, compressed; the helper's page has two names as the helper has.
install_manual() {
  pages=$(mktemp -d)
  trap 'rm -rf "$pages"' EXIT
  INSULA=$INSULA mount-scripts/man.sh "$pages"
  for page in $(cd "$pages" && find . -type f | sed 's|^\./||'); do
    gzip -9n <"$pages/$page" | put "$DESTDIR$MANDIR/$page.gz" 644
  done
  ln -sf mount.insula.8.gz "$DESTDIR$MANDIR/man8/mount.fuse.insula.8.gz"
}

remove_manual() {
  rm -f "$DESTDIR$MANDIR"/man1/insula.1.gz "$DESTDIR$MANDIR"/man1/insula-*.1.gz "$DESTDIR$MANDIR"/man5/insula.conf.5.gz \
    "$DESTDIR$MANDIR"/man7/insula.7.gz \
    "$DESTDIR$MANDIR"/man7/insula-*.7.gz "$DESTDIR$MANDIR"/man8/mount.insula.8.gz \
    "$DESTDIR$MANDIR"/man8/mount.fuse.insula.8.gz
}

install_all() {
  if ! is_open "$DESTDIR$BINDIR"; then
    echo "install: you may not write to $DESTDIR$BINDIR; become root, or install for yourself: PREFIX=~/.local" >&2
    exit 1
  fi
  put "$DESTDIR$BINDIR/insula" 755 <"$INSULA"
  "$INSULA" completions bash | put "$DESTDIR$BASHDIR/insula" 644
  "$INSULA" completions zsh | put "$DESTDIR$ZSHDIR/_insula" 644
  "$INSULA" completions fish | put "$DESTDIR$FISHDIR/insula.fish" 644
  install_manual
  cc=${CC:-cc} ar=${AR:-ar}
  if command -v "$cc" >/dev/null && command -v "$ar" >/dev/null; then
    install_library
    echo "Installed libinsula.a, insula.h and insula.pc below $DESTDIR$PREFIX, for programs that run as apps."
  else
    echo "Left out: libinsula, because there is no C compiler ('$cc') or no '$ar'."
  fi
  filled mount-scripts/insula-user.service | put "$userunit" 644
  filled mount-scripts/insula-agent.service | put "$agentunit" 644
  install_backup_units "$DESTDIR$USERUNITDIR"
  install_lock_unit insula-lock-user "$DESTDIR$USERUNITDIR"
  echo "Installed $DESTDIR$BINDIR/insula, and below $DESTDIR$PREFIX the manual, completions for bash, zsh and fish, and units"
  echo "for a user's own store ('systemctl --user enable --now insula') and for apps' questions on a desktop"
  echo "('systemctl --user enable --now insula-agent')."
  if is_open "$DESTDIR$SBINDIR"; then
    filled mount-scripts/mount.insula | put "$helper" 755
    ln -sf mount.fuse.insula "$shorthelper"
    echo "Installed $helper, for mount(8) and /etc/fstab."
  else
    echo "Left out: $helper, because you may not write there; 'mount -t fuse.insula' requires it and root, 'insula mount' does not."
  fi
  if is_for_all; then
    filled mount-scripts/insula.service | put "$unit" 644
    install_backup_units "$DESTDIR$UNITDIR"
    install_lock_unit insula-lock "$DESTDIR$UNITDIR"
    echo "Installed $unit, insula-backup.timer for a backup each day, and insula-lock for encrypted volumes at sleep."
  else
    echo "Left out: insula.service, because only root can install a unit that mounts a store when the machine starts."
  fi
  case :$PATH: in
    *:"$BINDIR":*) ;;
    *) [ -n "$DESTDIR" ] || echo "$BINDIR is not in your PATH; add it with 'export PATH=\"$BINDIR:\$PATH\"'." ;;
  esac
}

uninstall_all() {
  if ! is_open "$DESTDIR$BINDIR"; then
    echo "install: you may not write to $DESTDIR$BINDIR; become root, or install for yourself: PREFIX=~/.local" >&2
    exit 1
  fi
  rm -f "$DESTDIR$BINDIR/insula" "$DESTDIR$BASHDIR/insula" "$DESTDIR$ZSHDIR/_insula" "$DESTDIR$FISHDIR/insula.fish" "$userunit" \
    "$agentunit"
  remove_backup_units "$DESTDIR$USERUNITDIR"
  rm -f "$DESTDIR$USERUNITDIR/insula-lock.service"
  rm -f "$DESTDIR$LIBDIR/libinsula.a" "$DESTDIR$INCLUDEDIR/insula.h" "$DESTDIR$LIBDIR/pkgconfig/insula.pc"
  remove_manual
  # What another has installed for all stays.
  if is_open "$DESTDIR$SBINDIR"; then rm -f "$helper" "$shorthelper"; fi
  if is_for_all; then
    rm -f "$unit" "$DESTDIR$UNITDIR/insula-lock.service"
    remove_backup_units "$DESTDIR$UNITDIR"
  fi
}

case ${1:-} in
  install) install_all ;;
  uninstall) uninstall_all ;;
  *) echo "install.sh: the argument must be 'install' or 'uninstall'" >&2; exit 2 ;;
esac
