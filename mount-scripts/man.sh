#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Writes all pages of the manual, and checks them: man.sh DIRECTORY; man.sh --check DIRECTORY
# INSULA is the program, which carries all pages but that on the semantics. They get into DIRECTORY/man1, man5, man7 and man8.
set -eu
scripts=$(dirname "$0")

write_all() {
  "$INSULA" help --man >/dev/null || { echo "man.sh: $INSULA prints no manual" >&2; exit 1; }
  version=$("$INSULA" version)
  for page in $("$INSULA" help --man); do
    directory=$1/man${page##*.}
    mkdir -p "$directory"
    "$INSULA" help --man "$page" >"$directory/$page"
  done
  "$scripts/semantics-man.sh" "${version#insula }" >"$1/man7/insula-semantics.7"
  # The helper has two names, one for each type that mount(8) may be given.
  ln -sf mount.insula.8 "$1/man8/mount.fuse.insula.8"
}

# Prints what the programs that read a manual find wrong with a page; fails if there is anything, or no such program.
check_all() {
  found=$(mktemp)
  trap 'rm -f "$found"' EXIT
  checkers=
  if command -v man >/dev/null && command -v groff >/dev/null; then
    checkers="$checkers man"
    for page in "$1"/man*/*; do
      (cd "$1" && LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "man${page#"$1"/man}" 2>&1 >/dev/null) |
        sed "s|^|${page##*/}: |" >>"$found"
    done
  fi
  if command -v mandoc >/dev/null; then
    checkers="$checkers mandoc"
    # What stands in other packages is not looked for.
    (cd "$1" && find . -type f -exec mandoc -T lint -W warning {} + 2>&1) >>"$found" || [ -s "$found" ]
  fi
  [ -n "$checkers" ] || { echo "man.sh: the check requires man-db with groff, or mandoc" >&2; exit 1; }
  if [ -s "$found" ]; then cat "$found" >&2; exit 1; fi
  echo "Checked $(find "$1" -type f | wc -l) pages with$checkers: no warnings."
}

case ${1:-} in
  --check) [ $# -eq 2 ] && check_all "$2" ;;
  '' | -*) echo "man.sh: usage: man.sh [--check] DIRECTORY" >&2; exit 2 ;;
  *) write_all "$1" ;;
esac
