#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
#
# usage: INSULA=path/to/insula ltp.sh CHECKOUT [TEST...]
#
# The file system calls of the Linux Test Project, on a directory of ext4 and on a mount of a new store that lies on
# the same filesystem. CHECKOUT is a directory with LTP's sources, or with a build of them; nothing is fetched. What
# is not built yet is built there, and takes autoconf, automake and a C compiler. TESTs are names of LTP's own.
#
# A test whose outcome is not the same in both places must be in ltp-differences, with that outcome and the reason;
# and each that is there must differ. Exit status: 0 if so, 1 if not, 2 if nothing could be tried.
#
# As root, where TMPDIR (or /var/tmp) is on ext4. OUTPUT=DIR keeps what the tests have printed.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "ltp.sh: $*" >&2; exit 2; }
[ $# -ge 1 ] || fail 'usage: INSULA=path/to/insula ltp.sh CHECKOUT [TEST...]'
mapfile -t directories < <(grep -v '^#' "$here/ltp-directories" | xargs -n 1)
[ "$(id -u)" -eq 0 ] || fail 'needs root: the tests become other users'
checkout=$(realpath -e "$1") || fail "there is no $1"
shift
calls=$checkout/testcases/kernel/syscalls
[ -d "$calls" ] || fail "$checkout is no checkout of LTP: it has no testcases/kernel/syscalls"
insula=$(command -v "${INSULA:-$here/../../.build/release/insula}") || fail 'INSULA names no program'
insula=$(realpath "$insula")

scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/insula-ltp-XXXXXX")
chmod 755 "$scratch"
output=${OUTPUT:-$scratch/output}
point=$scratch/point
cleanup() {
  if mountpoint -q "$point"; then
    "$insula" unmount "$point" >/dev/null || umount -l "$point" || true
  fi
  rm -rf --one-file-system "$scratch"
}
trap cleanup EXIT
[ "$(stat -f -c %T "$scratch")" = ext2/ext3 ] || fail "$scratch is not on ext4; TMPDIR names another place"

build() {
  if [ ! -f "$checkout/include/mk/config.mk" ]; then
    make -C "$checkout" autotools && (cd "$checkout" && ./configure --disable-metadata) || return
  fi
  make -C "$checkout/lib" || return
  local directory
  for directory in "${directories[@]}"; do
    # A version of LTP that has fewer has fewer tests; one that the compiler refuses is told below.
    [ ! -d "$calls/$directory" ] || make -k -C "$calls/$directory" || true
  done
}
echo 'ltp: building'
mkdir -p "$output"
build >"$output/build.log" 2>&1 || { tail -n 20 "$output/build.log" >&2; fail 'LTP does not build'; }

# Each line: a name, and the command with its arguments. Left out are tests that make filesystems of their own on
# devices, where neither place matters.
choose() {
  local directory name command source
  while read -r name command; do
    [ -n "$command" ] || continue
    for directory in "${directories[@]}"; do
      [ -x "$calls/$directory/${command%% *}" ] || continue
      source=$calls/$directory/${command%% *}.c
      [ -f "$source" ] || source=${source%_*}.c
      [ -f "$source" ] || continue
      grep -qE 'needs_device|mount_device|all_filesystems|needs_rofs|format_device|tst_acquire_device|needs_hugetlbfs' "$source" ||
        echo "$name $directory $command"
      break
    done
  done < <(grep -vE '^(#|$)' "$checkout/runtest/syscalls")
}
choose >"$scratch/all"
if [ $# -gt 0 ]; then
  for name in "$@"; do
    grep "^$name " "$scratch/all" || fail "there is no test '$name' among those of files"
  done >"$scratch/chosen"
else
  cp "$scratch/all" "$scratch/chosen"
fi
[ -s "$scratch/chosen" ] || fail 'no test was built'

# What a test says in one word: how many of its parts failed, broke, warned and did not apply; 'passed' if none did.
outcome() {
  local status=$1 log=$2 word count said=
  for word in TFAIL TBROK TWARN TCONF; do
    count=$(grep -c "\b$word\b" "$log" || true)
    [ "$count" -eq 0 ] || said+=",$count$word"
  done
  case $status in
    0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 3[2-9]) ;;
    124 | 137) said+=,late ;;
    *) said+=",status$status" ;;
  esac
  said=${said#,}
  echo "${said:-passed}"
}

# Runs all in a directory, and writes the outcome of each.
run_in() {
  local place=$1 label=$2 name directory command status
  mkdir -p "$output/$label"
  while read -r name directory command; do
    mkdir -m 777 "$place/$name"
    chmod 777 "$place/$name"
    status=0
    (
      cd "$place/$name"
      # What a test starts it looks for where it was started itself.
      cp -p "$calls/$directory/${command%% *}_child" . 2>/dev/null || true
      # A machine under load must not change the outcome.
      # shellcheck disable=SC2086 # The list has words.
      exec env -i PATH="$calls/$directory:$checkout/testcases/lib:/usr/sbin:/usr/bin:/sbin:/bin" HOME=/root \
        LTPROOT="$checkout" TMPDIR="$place/$name" LTP_COLORIZE_OUTPUT=0 LTP_TIMEOUT_MUL=4 \
        timeout -k 5 600 $command
    ) >"$output/$label/$name" 2>&1 </dev/null || status=$?
    sed -i '/^Summary:/,$d' "$output/$label/$name"
    echo "$name $(outcome "$status" "$output/$label/$name")"
    rm -rf --one-file-system "${place:?}/$name" 2>/dev/null || {
      # Marks that only root may take away, which a test has left.
      chattr -R -i -a "$place/$name" 2>/dev/null || true
      rm -rf --one-file-system "${place:?}/$name" || true
    }
  done <"$scratch/chosen" >"$scratch/$label"
}

mkdir -m 777 "$scratch/plain" "$point"
chmod 777 "$scratch/plain"
echo "ltp: $(wc -l <"$scratch/chosen") tests on ext4"
run_in "$scratch/plain" ext4
"$insula" init "$scratch/store" >/dev/null
"$insula" mount "$scratch/store" "$point"
mkdir -m 777 "$point/Users/Shared/ltp"
chmod 777 "$point/Users/Shared/ltp"
echo 'ltp: the same on a mount'
run_in "$point/Users/Shared/ltp" insula
"$insula" status "$point" >/dev/null || fail 'the mount does not answer any more'

# A name, the outcome on ext4 and the one on the mount: what differs, and what should.
awk 'NR == FNR { plain[$1] = $2; next } plain[$1] != $2 { print $1, plain[$1], $2 }' \
  "$scratch/ext4" "$scratch/insula" | sort >"$scratch/differs"
awk 'NR == FNR { chosen[$1]; next } $1 in chosen { print $1, $2, $3 }' \
  "$scratch/chosen" "$here/ltp-differences" | sort >"$scratch/expected"
cp "$scratch/ext4" "$scratch/insula" "$scratch/differs" "$output/" 2>/dev/null || true
echo "ltp: $(awk '$2 == "passed"' "$scratch/ext4" | wc -l) pass on ext4," \
  "$(awk '$2 == "passed"' "$scratch/insula" | wc -l) on the mount, $(wc -l <"$scratch/differs") differ"
if ! diff "$scratch/expected" "$scratch/differs" >"$scratch/diff"; then
  echo 'ltp: not as ltp-differences has it (the test, its outcome on ext4, its outcome on the mount):'
  sed -n 's/^< /  is no difference:  /p; s/^> /  is not in the list: /p' "$scratch/diff"
  exit 1
fi
