#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
#
# Puts a mounted store under load, and holds it to its promises: what was written is there, nothing hangs, nothing leaks.
# Everything lies on one ext4 image in memory; all of it is gone again when this script ends.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: mount-scripts/stress.sh [options]          (as root)
  --quick            about a minute
  --only MODE,...    these ways to mount only: default nopassthrough nohandles few few-nohandles rootless
  --load LOAD,...    these loads only: fio mix stress-ng
  --stressor NAME,...  of stress-ng these only
  --seconds S        how long each of stress-ng's stressors runs (default 5)
  --size MIB         size of the image (default 3072)
  --sanitize KIND    a daemon that is built with Swift's sanitizer of that kind, thread or address: the mix alone, about a
                     minute of it; fails at the first report
Environment: INSULA (the program, default: the release build, with --sanitize a build in .build/KIND).
EOF
}

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
say() { echo "stress: $*" >&2; }
die() { say "FAILED${mode:+ in mode $mode}: $*"; exit 1; }

quick='' sanitizer='' seconds=5 size=3072 rounds=2 scale=4 fio_size=64m stressors='' mode=''
modes='default nopassthrough nohandles few few-nohandles rootless' loads='fio mix stress-ng'
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=yes seconds=1 rounds=1 scale=1 fio_size=8m modes='default few-nohandles rootless' ;;
    --only) modes=${2//,/ }; shift ;;
    --load) loads=${2//,/ }; shift ;;
    --stressor) stressors=${2//,/ }; shift ;;
    --seconds) seconds=$2; shift ;;
    --size) size=$2; shift ;;
    --sanitize) sanitizer=$2 rounds=1 scale=1 modes='default nopassthrough few-nohandles' loads=mix; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

[ "$(id -u)" = 0 ] || die "needs root, for mounts"
for tool in fio stress-ng mkfs.ext4 losetup git tar find flock sqlite3 setpriv useradd; do
  command -v "$tool" >/dev/null || die "$tool is missing; apt-get install fio stress-ng e2fsprogs mount git tar findutils util-linux sqlite3 passwd"
done
case $sanitizer in
  '' | thread | address) ;;
  *) die "no sanitizer '$sanitizer': thread or address" ;;
esac
if [ -z "${INSULA:-}" ] && [ -n "$sanitizer" ]; then
  (cd "$repo" && swift build --scratch-path ".build/$sanitizer" "--sanitize=$sanitizer" --product insula >&2) || die "build"
  INSULA=$repo/.build/$sanitizer/debug/insula
elif [ -z "${INSULA:-}" ]; then
  INSULA=$repo/.build/release/insula
  [ -x "$INSULA" ] || die "no $INSULA: run 'make build', or set INSULA"
fi

base=$(mktemp -d /tmp/insula-stress.XXXXXX)
user='' pid='' mnt='' connection=''
mounted() { awk -v at="$1" '$5 == at { found = 1 } END { exit !found }' /proc/self/mountinfo; }

# Whatever state things are in: no process, mount, loop device or user of ours stays behind.
clean() {
  local status=$? at
  trap - EXIT INT TERM HUP
  set +e
  cd /
  # Whoever works below our own directory is ours.
  for _ in 1 2 3; do
    for process in /proc/[0-9]*; do
      case $(readlink "$process/cwd" 2>/dev/null) in "$base"/*) kill -KILL "${process#/proc/}" 2>/dev/null ;; esac
    done
    [ -z "$user" ] || for name in timeout bash env fio stress-ng; do pkill -KILL -u "$user" "^$name"; done
  done
  sleep 0.3
  if [ -n "$pid" ] && [ -n "$mnt" ] && mounted "$mnt"; then
    timeout 20 umount "$mnt" 2>/dev/null
    if mounted "$mnt"; then
      [ ! -w "$base/fusectl/$connection/abort" ] || echo 1 >"$base/fusectl/$connection/abort"
      kill -KILL "$pid" 2>/dev/null
      umount -l "$mnt"
    fi
  fi
  # Innermost first.
  for at in $(awk -v base="$base" 'index($5, base) == 1 { print $5 }' /proc/self/mountinfo | sort -r); do
    timeout 20 umount "$at" 2>/dev/null || umount -l "$at"
  done
  for at in $(losetup --list --noheadings --output NAME,BACK-FILE | awk -v base="$base/" 'index($2, base) == 1 { print $1 }'); do
    losetup --detach "$at"
  done
  # Forced: what has just been killed may still be counted as theirs.
  [ -z "$user" ] || userdel --force "$user" 2>/dev/null
  rmdir "$base" 2>/dev/null
  exit "$status"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP

mount -t tmpfs -o "size=$((size + 256))m,mode=0755" insula-stress "$base"
mkdir "$base/disk" "$base/mnt" "$base/fusectl" "$base/log"
# Where every user can read them, whoever owns the repository.
cp -r "$repo/mount-scripts/stress" "$base/stress"
cp "$INSULA" "$base/insula"
here=$base/stress INSULA=$base/insula
reports=$base/reports
sanitize() {
  # Swift's own clang is beside the swift program; mutex.c says what it is for.
  local clang
  clang=$(dirname "$(realpath "$(command -v swift)")")/clang
  mkdir -m 1777 "$reports"
  if [ "$sanitizer" = thread ]; then
    "$clang" -shared -fPIC -o "$base/mutex.so" "$here/mutex.c" || die "can't build mutex.so"
    as_sanitized="LD_PRELOAD=$base/mutex.so TSAN_OPTIONS=log_path=$reports/report"
  else
    # Foundation leaks a little of its own, so leaks are not looked for.
    as_sanitized="ASAN_OPTIONS=detect_leaks=0:log_path=$reports/report"
  fi
}
as_sanitized=''
[ -z "$sanitizer" ] || sanitize
mount -t fusectl none "$base/fusectl" || die "no fusectl"
truncate -s "${size}M" "$base/image"
mkfs.ext4 -q -F -i 4096 -E lazy_itable_init=0,lazy_journal_init=0 "$base/image"
mount -o loop "$base/image" "$base/disk"
mkdir -m 1777 "$base/disk/plain"
# A tree to unpack: the program's own sources, several times.
mkdir "$base/source"
for copy in $(seq "$((scale * 2))"); do
  mkdir "$base/source/$copy"
  (cd "$repo" && tar -cf - Sources Tests) | tar -xf - -C "$base/source/$copy"
done
tar -cf "$base/tree.tar" -C "$base/source" .
files=$(find "$base/source" -type f | wc -l)

# as_user COMMAND...: as whoever is to use the mount.
as_user() {
  if [ "$mode" = rootless ]; then
    setpriv --reuid="$user" --regid="$user" --init-groups env HOME="$base/home" XDG_RUNTIME_DIR="$base/home" "$@"
  else
    "$@"
  fi
}
field() { as_user "$INSULA" status --json "$store" | sed -n "s/^ *\"$1\" : \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p"; }
rss() { awk '/^VmRSS/ { print $2 }' "/proc/$pid/status"; }
descriptors() { find "/proc/$pid/fd" -mindepth 1 -maxdepth 1 | wc -l; }
alive() { [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = insula ] && [ "$(field pid)" = "$pid" ]; }

bring_up() {
  store=$base/disk/store-$mode mnt=$base/mnt/$mode
  local options='' limit=''
  case $mode in
    default | rootless) ;;
    nopassthrough | nohandles) options="-o $mode" ;;
    few) limit=300 ;;
    few-nohandles) limit=300 options='-o nohandles' ;;
    *) die "no such mode" ;;
  esac
  mkdir "$mnt"
  if [ "$mode" = rootless ]; then
    user=istress$$
    useradd --no-create-home --home-dir "$base/home" --shell /bin/sh "$user"
    install -d -m 700 -o "$user" "$base/home" "$store"
    chown "$user" "$mnt"
  fi
  as_user "$INSULA" init "$store" >"$base/log/$mode" 2>&1 || die "init: $(cat "$base/log/$mode")"
  # shellcheck disable=SC2086
  (
    [ -z "$limit" ] || ulimit -n "$limit"
    as_user env $as_sanitized "$INSULA" mount "$store" "$mnt" $options
  ) >"$base/log/$mode" 2>&1 || die "mount: $(cat "$base/log/$mode")"
  pid=$(field pid)
  connection=$(awk -v at="$mnt" '$5 == at { split($3, n, ":"); print n[2] }' /proc/self/mountinfo)
  as_user mkdir -p "$mnt/Users/Shared"
  [ "$(field passthrough)" = "$(case $mode in nopassthrough | rootless) echo false ;; *) echo true ;; esac)" ] ||
    die "passthrough is $(field passthrough)"
  settle
  nodes=$(field nodes) known=$(field descriptors) open=$(descriptors)
  say "mode $mode: pid $pid, $nodes nodes, $open descriptors, $(rss) KiB"
}

take_down() {
  settle
  as_user "$INSULA" unmount "$store" >"$base/log/$mode" 2>&1 || die "unmount: $(cat "$base/log/$mode")"
  for _ in $(seq 100); do
    [ -d "/proc/$pid" ] || break
    sleep 0.1
  done
  [ ! -d "/proc/$pid" ] || die "the daemon goes on after the unmount"
  sanitizer_reports unmount
  as_user "$INSULA" check "$store" >"$base/log/$mode" 2>&1 || die "check: $(cat "$base/log/$mode")"
  pid=''
  rm -rf "$store"
}

# Lets the kernel give back what it has of us.
settle() {
  sync -f "$base/disk"
  echo 2 >/proc/sys/vm/drop_caches
  sleep 0.2
}

# The sanitizer writes a file for each process that it has something to say of.
sanitizer_reports() {
  [ -d "$reports" ] && [ -n "$(ls "$reports")" ] || return 0
  head -n 200 "$reports"/* >&2
  die "the sanitizer reports, after $1"
}

# What must hold after each load, its files being gone: waits for it for a while, since releases and forgets come late.
promises() {
  local what=$1 state='' attempt
  sanitizer_reports "$what"
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = insula ] || die "the daemon has died during $what; see the end of dmesg"
  for attempt in $(seq 60); do
    state=''
    [ "$(cat "$base/fusectl/$connection/waiting")" = 0 ] || state="$state waiting=$(cat "$base/fusectl/$connection/waiting")"
    local name value limit
    for name in openFiles=0 openDirectories=0 locks=0 nodes="$nodes" descriptors="$known"; do
      limit=${name#*=} name=${name%%=*} value=$(field "$name")
      [ -n "$value" ] || die "status does not answer after $what"
      [ "$value" -le "$limit" ] || state="$state $name=$value (at most $limit)"
    done
    value=$(descriptors)
    [ "$value" -le "$open" ] || state="$state fds=$value (at most $open)"
    [ -n "$state" ] || break
    [ "$((attempt % 5))" != 0 ] || settle
    sleep 0.2
  done
  [ -z "$state" ] || {
    find "/proc/$pid/fd" -type l -printf '%l\n' 2>/dev/null | sort | uniq -c >&2
    die "left behind after $what:$state"
  }
  alive || die "another daemon answers after $what"
  kernel_messages "$what"
}

messages=$(dmesg 2>/dev/null | wc -l) || messages=0
kernel_messages() {
  local new
  new=$(dmesg 2>/dev/null | tail -n "+$((messages + 1))" | grep -iE 'fuse|insula|hung task|blocked for more' || true)
  [ -z "$new" ] || die "the kernel complains after $1: $new"
}

# Runs a load in a directory of its own, which must be possible to remove afterwards.
load() {
  local name=$1 place=$mnt/Users/Shared/$1 start=$SECONDS
  shift
  as_user mkdir "$place"
  "$@" "$place" || die "$name: the load itself failed, or what it wrote differs from what is in the store"
  # A file's owner may make it immutable here, as on a Mac; such a load may be stopped before it takes that back.
  case $name in chattr | inode-flags) as_user chattr -R -f -ia "$place" || true ;; esac
  as_user timeout 120 rm -rf "$place" || die "$name: can't remove its files"
  [ ! -e "$store/tree/Users/Shared/$name" ] || die "$name: its files are still in the store"
  promises "$name"
  say "  $name: $((SECONDS - start)) s, $(rss) KiB"
}

# Only the user's own processes can be in a rootless mount.
in_directory() {
  # shellcheck disable=SC2016
  as_user bash -c 'cd "$1" && shift && exec "$@"' - "$@"
}

load_fio() {
  local output=$base/log/fio
  in_directory "$1" env SIZE="$fio_size" timeout 600 fio --directory="$1" "$here/verify.fio" >"$output" 2>&1 ||
    { grep -E 'fio:|verify|err=[^ ]*[1-9]' "$output" >&2; return 1; }
}

# The mix: every worker is a function of its directory; each ends by itself and fails if what it finds is wrong.
load_mix() {
  export tree=$base/tree.tar files scale
  local workers=() worker failed=0
  for worker in $(sed -n 's/^\(work_[a-z]*\)() .*/\1/p' "$here/mix.sh"); do
    as_user mkdir "$1/$worker"
    in_directory "$1/$worker" timeout 300 bash "$here/mix.sh" "$worker" "$1/$worker" >"$base/log/$worker" 2>&1 &
    workers+=("$!=$worker")
  done
  for worker in "${workers[@]}"; do
    local status=0
    wait "${worker%%=*}" || status=$?
    case $status in
      0) continue ;;
      124) say "${worker#*=}: not done in 300 s, on a machine whose load is $(cut -d' ' -f1 /proc/loadavg)" ;;
      *) say "${worker#*=}: $(tail -5 "$base/log/${worker#*=}")" ;;
    esac
    failed=1
  done
  [ "$failed" = 0 ] || return 1
  # What the mount shows is what the store has.
  local below=$store/tree/${1#"$mnt"/} format='%P %y %m %U %G %s %T@ %l\n'
  as_user diff -r --no-dereference "$1" "$below" >&2 || return 1
  diff <(in_directory "$1" find . -printf "$format" | sort) <(in_directory "$below" find . -printf "$format" | sort) >&2
}

stressor_list() {
  if [ -n "$stressors" ]; then echo "$stressors"; return; fi
  if [ -n "$quick" ]; then
    echo dentry fallocate flock fpunch getdent locka lockofd rename xattr
    return
  fi
  { stress-ng --class 'filesystem?' 2>&1 || true; } | sed -n 's/^class .* stressors: //p' | tr ' ' '\n' |
    grep -vxF -f <(sed -n 's/^\([a-z][a-z-]*\) .*/\1/p' "$here/excluded")
}

run_stressor() {
  in_directory "$2" timeout -k 10 "$((seconds * 6 + 60))" stress-ng "--$1" 1 --verify -t "$seconds" --temp-path "$2"
}

# A stressor that fails on the plain directory as well says nothing about us.
load_stressor() {
  local name=$1 place=$2 log=$base/log/stress-ng status=0
  run_stressor "$name" "$place" >"$log" 2>&1 || status=$?
  # 1: wrong options; 3 and 4: not to be had here, and so it must be on the plain directory.
  case $status in
    0) return 0 ;;
    1) cat "$log" >&2; return 1 ;;
  esac
  local plain=$base/disk/plain/$name
  as_user mkdir "$plain"
  local plain_status=0
  run_stressor "$name" "$plain" >"$log.plain" 2>&1 || plain_status=$?
  rm -rf "$plain"
  if [ "$plain_status" = "$status" ]; then
    say "  $name fails on the plain directory as well ($status): $(grep -m1 -E 'fail|error' "$log.plain" || tail -1 "$log.plain")"
    return 0
  fi
  cat "$log" >&2
  say "$name: $status here, $plain_status on the plain directory"
  return 1
}

for mode in $modes; do
  if [ "$mode" = rootless ]; then
    if [ ! -w /dev/fuse ] || [ "$(stat -c %a /dev/fuse)" != 666 ] || ! command -v fusermount3 >/dev/null; then
      say "WITHOUT mode rootless: /dev/fuse is not for everyone, or there is no fusermount3"
      continue
    fi
  fi
  bring_up
  for kind in $loads; do
    # With few descriptors, what a load itself holds open may be more than there are.
    case $mode-$kind in few*-stress-ng | few*-fio) continue ;; esac
    case $quick-$mode-$kind in yes-default-*) ;; yes-*-stress-ng | yes-rootless-fio) continue ;; esac
    case $kind in
      fio) load fio load_fio ;;
      mix)
        for round in $(seq $((rounds + 1))); do
          load mix load_mix
          # The first round warms up: buffers, the allocator, the tables' size.
          [ "$round" != 1 ] || before=$(rss)
        done
        after=$(rss)
        # A sanitizer keeps what is freed.
        [ -n "$sanitizer" ] || [ "$((after - before))" -le 2048 ] || die "memory grew from $before to $after KiB over $rounds equal rounds"
        ;;
      stress-ng) for name in $(stressor_list); do load "$name" load_stressor "$name"; done ;;
      *) die "no such load: $kind" ;;
    esac
  done
  take_down
done
mode=''
say "all promises were kept, in $SECONDS s"
