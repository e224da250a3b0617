#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
#
# Measures Insula against the plain directory, bindfs, mergerfs and libfuse's passthrough_hp; see Benchmarks/README.md.
# Everything lies on one ext4 image in memory, under $base; all of it is gone again when this script ends.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: mount-scripts/bench.sh [options]          (as root)
  --quick             a few rows, 2 rounds, under a minute
  --rounds N          rounds (default 7)
  --seconds S         length of a sample (default 0.3)
  --only ROW,...      these rows only; --list prints their names
  --without NAME,...  leave out insula, bindfs, mergerfs or passthrough_hp
  --before PROGRAM    compare with another build of insula, and with nothing else, on one processor
  --case-insensitive  insula's store ignores case; not that of --before
  --memory [FILES]    instead: the daemons' memory for each file they know (default 1000000 files)
  --views [COUNT]     instead: how soon an app starts, and what so many running apps cost the daemon (default 1000)
  --profile           instead: where the microseconds of a round trip go (needs perf)
  --inside            the whole tree against the view of an app, instead of all others
  --size GIB          size of the image (default 4)
  --save              write Benchmarks/results also after a partial run
  --clean             only clear what a crashed run has left
Environment: INSULA (the program, default .build/release/insula), BENCH_SCRATCH_PATH (where to build the benchmark),
PASSTHROUGH_HP (the program, default Benchmarks/.build/passthrough_hp).
EOF
}

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
base=/run/insula-bench
mnt=$base/mnt
disk=$base/disk
insula=${INSULA:-$repo/.build/release/insula}
build=${BENCH_SCRATCH_PATH:-$repo/Benchmarks/.build}
passthrough=${PASSTHROUGH_HP:-$repo/Benchmarks/.build/passthrough_hp}
mergerfs_options=use_ino,cache.files=auto-full,cache.readdir=true,category.create=ff,minfreespace=0

say() { echo "bench: $*" >&2; }
die() { say "$*"; exit 1; }

rounds=7 seconds=0.3 only='' without='' before='' size=4 memory='' views='' inside='' profile='' runner='' save=auto store_options=()
while [ $# -gt 0 ]; do
  case $1 in
    --quick) rounds=2 seconds=0.2 save=${save/auto/no}
      only=stat,stat-missing,readdir,open-read,chmod,create,unlink,sequential-read,random-read ;;
    --rounds) rounds=${2:?}; shift ;;
    --seconds) seconds=${2:?}; shift ;;
    --only) only=${2:?}; save=${save/auto/no}; shift ;;
    --without) without=${2:?}; shift ;;
    --before) before=${2:?}; without=bindfs,mergerfs,passthrough_hp; save=${save/auto/no}; shift ;;
    --case-insensitive) store_options=(--case-insensitive); save=${save/auto/no} ;;
    --size) size=${2:?}; shift ;;
    --memory) memory=1000000; case ${2:-} in [0-9]*) memory=$2; shift ;; esac ;;
    --views) views=1000; case ${2:-} in [0-9]*) views=$2; shift ;; esac ;;
    --inside) inside=yes ;;
    --profile) profile=yes without=bindfs,mergerfs,passthrough_hp ;;
    --save) save=yes ;;
    --clean) only=clean ;;
    --list) only=list ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
# Which processor wakes which one is worth more than two builds differ by; on one processor 2 percent can be seen.
if [ -n "$before" ]; then taskset -pc "$(taskset -pc $$ | sed 's/.*: \([0-9]*\).*/\1/')" $$ >/dev/null; fi
# These are about insula alone.
[ -z "$views$inside" ] || without=bindfs,mergerfs,passthrough_hp

mounted() { awk -v at="$1" '$5 == at { found = 1 } END { exit !found }' /proc/self/mountinfo; }

# Unmounts one mount point whatever its state: politely, then by ending a daemon that hangs, then lazily.
# A daemon that is told to end may unmount by itself meanwhile, so what counts is what is mounted afterwards.
unmount() {
  local device name pid
  for _ in 1 2 3; do
    timeout 5 umount "$1" 2>/dev/null || true
    mounted "$1" || return 0
    sleep 0.2
  done
  device=$(awk -v at="$1" '$5 == at { split($3, n, ":"); minor = n[2] } END { print minor }' /proc/self/mountinfo)
  if [ -n "$device" ] && [ -w "/sys/fs/fuse/connections/$device/abort" ]; then
    say "aborting the connection of $1"
    echo 1 >"/sys/fs/fuse/connections/$device/abort" || true
  fi
  # The name of the process is checked, since a crashed run's number may belong to somebody else by now.
  name=$(basename "$1")
  pid=$(cat "$base/$name.pid" 2>/dev/null) || pid=''
  if [ -n "$pid" ] && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$name" ]; then
    say "killing $name, process $pid"
    kill -KILL "$pid" 2>/dev/null || true
  fi
  for _ in 1 2 3; do
    sleep 0.3
    timeout 5 umount "$1" 2>/dev/null || true
    mounted "$1" || return 0
  done
  say "unmounting $1 lazily"
  umount -l "$1" || ! mounted "$1"
}

# Ends the benchmark and the programs it runs, if they still go on.
stop_benchmark() {
  local pid
  pid=$(cat "$base/bench.pid" 2>/dev/null) || return 0
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = insula-bench ] || return 0
  kill -KILL -- "-$pid" 2>/dev/null || true
  # What waits for an answer of a daemon that hangs ends with its daemon, not before.
  for _ in $(seq 20); do
    pgrep -g "$pid" --runstates D,R,S >/dev/null || break
    sleep 0.1
  done
}

# Clears everything under $base, of this run or of a crashed one, whatever state it is in.
clear_all() {
  cd /
  local at
  stop_benchmark
  ! mounted "$mnt/view" || unmount "$mnt/view"
  # With the app goes its namespace, in which all of these are mounted too.
  [ -z "$runner" ] || kill "$runner" 2>/dev/null || true
  [ -z "$runner" ] || wait "$runner" 2>/dev/null || true
  for at in "$mnt/insula" "$mnt/before"; do
    if mounted "$at" && [ -x "$insula" ]; then timeout 20 "$insula" unmount "$at" >/dev/null 2>&1 || true; fi
  done
  while at=$(awk -v base="$base" 'index($5, base) == 1 { last = $5 } END { print last }' /proc/self/mountinfo); [ -n "$at" ]; do
    # The image is freed only after its filesystem has let go of it, so the loop device goes with the mount (autoclear).
    unmount "$at" || { say "can't unmount $at"; return 1; }
  done
  for at in $(losetup --list --noheadings --output NAME,BACK-FILE 2>/dev/null | awk -v base="$base/" 'index($2, base) == 1 { print $1 }'); do
    losetup --detach "$at" || true
  done
  [ ! -d "$base" ] || rmdir "$base"
}

[ "$(id -u)" = 0 ] || die "needs root, for mounts"
# One run at a time. The daemons must not inherit the lock (9>&-), or a leftover one would keep it.
exec 9>/run/insula-bench.lock
flock -n 9 || die "another run is going on"
if [ -e "$base" ]; then
  say "clearing what an earlier run has left in $base"
  clear_all
fi
[ "$only" != clean ] || exit 0

say "building the benchmark"
swift build -c release --package-path "$repo/Benchmarks" --scratch-path "$build" >&2 9>&-
bench=$build/release/insula-bench
[ "$only" != list ] || { "$bench" --list; exit 0; }

names=''
for name in insula bindfs mergerfs passthrough_hp; do
  case ",$without," in
    *",$name,"*) say "WITHOUT $name, as asked: its column will be missing" ;;
    *) names="$names $name" ;;
  esac
done
if [ -n "$before" ]; then
  [ -x "$before" ] || die "no $before"
  names="$names before"
fi
missing=''
for name in $names; do
  case $name in
    insula) [ -x "$insula" ] || die "no $insula: run 'swift build -c release', set INSULA, or give --without insula" ;;
    before) ;;
    passthrough_hp) [ -x "$passthrough" ] || die "no $passthrough: 'Benchmarks/passthrough_hp.sh' builds it from Debian's source of \
libfuse; or set PASSTHROUGH_HP, or leave it out with --without passthrough_hp" ;;
    *) command -v "$name" >/dev/null || missing="$missing $name" ;;
  esac
done
[ -z "$missing" ] || die "missing:$missing. apt-get install$missing, or leave them out with --without$missing"
for tool in mkfs.ext4 losetup tar git make cc find grep openssl ${views:+bwrap} ${inside:+bwrap} ${profile:+perf python3}; do
  command -v "$tool" >/dev/null || die "missing: $tool. apt-get install e2fsprogs mount tar git make gcc findutils grep openssl bubblewrap"
done

trap clear_all EXIT
trap 'exit 130' INT TERM HUP
mkdir -p "$base"
mount -t tmpfs -o "size=$((size + 1))g,mode=0700" insula-bench "$base"
mkdir "$disk" "$mnt" "$base/scratch"
truncate -s "${size}G" "$base/image"
mkfs.ext4 -q -F -i "$([ -n "$memory" ] && echo 1024 || echo 4096)" \
  -E lazy_itable_init=0,lazy_journal_init=0 "$base/image"
mount -o loop,noatime "$base/image" "$disk"
mkdir "$disk/plain" "$disk/bind" "$disk/merger" "$disk/passthrough"

daemon=''
contenders=(--contender "plain=$disk/plain")
memory_places=()
facts=()
fact() { facts+=(--fact "$1=$2"); }
add() {
  contenders+=(--contender "$1=$2:$3")
  memory_places+=("$2:$3")
  [ "$1" != insula ] || daemon=$3
  echo "$3" >"$base/$1.pid"
}

# Waits until a mount point is served, or its daemon (if its pid is given) has died.
await() {
  for _ in $(seq 200); do
    mounted "$1" && timeout 10 stat "$1" >/dev/null && return
    [ -z "${2:-}" ] || kill -0 "$2" 2>/dev/null || break
    sleep 0.05
  done
  die "nothing was mounted on $1; see $base/*.log: $(cat "$base"/*.log 2>/dev/null | tail -5)"
}

# Installs an app of a hundred small files into a mounted store: NAME PROGRAM. Its identity and root are those of the rows that sign.
install_app() {
  local name=$1 program=$2 app=$base/scratch/$1/Sealed.app number
  local -x XDG_CONFIG_HOME=$base/scratch/config
  {
    mkdir "$base/scratch/$name" && "$program" new-app Sealed "$base/scratch/$name" &&
      for number in $(seq 0 99); do head -c 4096 /dev/urandom >"$app/Contents/Resources/r$number" || return; done &&
      if [ ! -e "$base/scratch/root.pem" ]; then
        "$program" identity new Bench &&
          "$program" identity export Bench --certificate "$base/scratch/root.pem" &&
          "$program" trust add "$base/scratch/root.pem"
      fi &&
      "$program" sign "$app" &&
      "$program" trust add "$base/scratch/root.pem" --store "$disk/store-$name" &&
      { [ -z "$views$inside" ] || "$program" user add root --store "$disk/store-$name"; } &&
      "$program" install "$app" --store "$disk/store-$name"
  } >"$base/$name.log" 2>&1 9>&- || {
    say "$name can't install an app: $(tail -1 "$base/$name.log")"
    return 0
  }
  contenders+=(--app "$name=$mnt/$name/Applications/Sealed.app/Contents/Resources")
}

# Mounts a store of its own with a build of insula: NAME PROGRAM.
start_build() {
  local name=$1 program=$2 pid options=()
  [ "$name" = before ] || options=("${store_options[@]}")
  "$program" init "$disk/store-$name" "${options[@]}" >"$base/$name.log" 2>&1 9>&- || die "insula init: $(cat "$base/$name.log")"
  "$program" mount "$disk/store-$name" "$mnt/$name" >"$base/$name.log" 2>&1 9>&- ||
    die "insula mount: $(cat "$base/$name.log")"
  await "$mnt/$name"
  pid=$("$program" status --json "$disk/store-$name" 2>/dev/null | grep -o '"pid"[^0-9]*[0-9]*' | grep -o '[0-9]*$' | head -1) || true
  [ -n "$pid" ] || pid=$(pgrep -f -o "insula.*$disk/store-$name") || true
  [ -n "$pid" ] || die "can't find the process of $program"
  mkdir -p "$mnt/$name/Users/Shared/bench"
  add "$name" "$mnt/$name/Users/Shared/bench" "$pid"
  contenders+=(--program "$name=$(realpath "$program")")
  [ -n "$memory" ] || install_app "$name" "$program"
  fact "$([ "$name" = insula ] && echo Insula || echo "$name")" "$("$program" --version 2>/dev/null | head -1 || true), defaults"
}

start_insula() { start_build insula "$insula"; }
start_before() { start_build before "$before"; }

start_bindfs() {
  bindfs -f --multithreaded "$disk/bind" "$mnt/bindfs" >"$base/bindfs.log" 2>&1 9>&- &
  await "$mnt/bindfs" $!
  add bindfs "$mnt/bindfs" $!
  fact bindfs "$(bindfs --version | head -1), --multithreaded"
}

start_mergerfs() {
  mergerfs -f -o "$mergerfs_options" "$disk/merger" "$mnt/mergerfs" >"$base/mergerfs.log" 2>&1 9>&- &
  await "$mnt/mergerfs" $!
  add mergerfs "$mnt/mergerfs" $!
  fact mergerfs "$(mergerfs --version | sed -n 's/^mergerfs v\(ersion: \)*/mergerfs /p' | head -1), $mergerfs_options"
}

# libfuse's own example of a fast filesystem: what can be had without a gate, a journal or views.
start_passthrough_hp() {
  "$passthrough" --foreground "$disk/passthrough" "$mnt/passthrough_hp" >"$base/passthrough_hp.log" 2>&1 9>&- &
  await "$mnt/passthrough_hp" $!
  add passthrough_hp "$mnt/passthrough_hp" $!
  fact passthrough_hp "libfuse $(pkg-config --modversion fuse3 2>/dev/null || echo unknown), defaults"
}

first_child() { [ -z "$1" ] || pgrep -P "$1" | head -1; }

# Runs an app that only waits, mounts its container as it sees it on $mnt/view, and makes that a contender of the same place in the
# whole tree.
enter_view() {
  local container=$mnt/insula/Users/root/Library/Containers/org.example.sealed/Data pid=''
  "$insula" run --store "$disk/store-insula" org.example.sealed -- sleep 100000 >"$base/view.log" 2>&1 9>&- &
  runner=$!
  for _ in $(seq 200); do
    kill -0 "$runner" 2>/dev/null || break
    # bubblewrap, its first process in the sandbox, and the app.
    pid=$(first_child "$(first_child "$(first_child "$runner")")")
    [ "$(cat "/proc/${pid:-none}/comm" 2>/dev/null)" != sleep ] || break
    pid=''
    sleep 0.05
  done
  [ -n "$pid" ] || die "the app does not run: $(tail -1 "$base/view.log")"
  mkdir "$mnt/view"
  "$bench" --take-mount "$pid" "$container" "$mnt/view"
  mkdir "$container/tmp/tree" "$container/tmp/view"
  contenders=(--contender "tree=$container/tmp/tree:$daemon" --contender "view=$mnt/view/tmp/view:$daemon")
  fact Compared "the same container in the whole tree ('tree', here also called plain) and in the view of its app ('view')"
}

commit=$(git -C "$repo" rev-parse --short HEAD 2>/dev/null || echo unknown)
# The results themselves don't make the tree a changed one.
[ -z "$(git -C "$repo" status --porcelain -- . ':!Benchmarks/results' 2>/dev/null)" ] || commit="$commit, with changes"
fact Date "$(date -u +'%Y-%m-%d %H:%M UTC')"
fact Commit "$commit"
fact Kernel "$(uname -r) $(uname -m)"
fact Machine "$(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(awk '/^MemTotal/ { printf "%d GiB", $2 / 1048576 + 0.5 }' /proc/meminfo)"
fact Load "$(cut -d' ' -f1-3 /proc/loadavg) before the run"
fact Disk "ext4 image of $size GiB on tmpfs, loop-mounted, noatime"
fact libfuse "$(pkg-config --modversion fuse3 2>/dev/null || echo unknown)"
fact Tools "$(git --version), $(tar --version | head -1), $(cc --version | head -1)"
for name in $names; do
  mkdir "$mnt/$name"
  "start_$name"
done

# Runs the benchmark in a session of its own, so that it can be ended with the programs it runs. No row may hang the
# run for ever: after the limit, or a signal to this script, the trap ends it and unmounts.
limit=3600
run_benchmark() {
  setsid "$bench" "$@" 9>&- &
  local pid=$! end=$((SECONDS + limit))
  echo "$pid" >"$base/bench.pid"
  while kill -0 "$pid" 2>/dev/null; do
    [ "$SECONDS" -lt "$end" ] || die "stopped after $limit seconds"
    sleep 0.5 9>&-
  done
  wait "$pid"
}

if [ -n "$memory" ]; then
  for place in "${memory_places[@]}"; do
    run_benchmark --memory "$place" "$memory" || say "failed for $place"
  done
  exit 0
fi
app=$(realpath "$insula"),$disk/store-insula,org.example.sealed
if [ -n "$views" ]; then
  run_benchmark --scratch "$base/scratch" --run-start "$app"
  run_benchmark --many-views "$app" "$daemon" "$views"
  exit 0
fi
if [ -n "$profile" ]; then
  cc -O2 -Wall -Wextra -o "$build/loop" "$repo/Benchmarks/Profile/loop.c"
  "$repo/Benchmarks/Profile/profile.py" "$insula" "$disk/store-insula" "$build/loop" "$disk/plain" "$mnt/insula/Users/Shared/bench" \
    "$daemon" 9>&-
  exit 0
fi
expectations=$repo/Benchmarks/expectations.json
# Two builds ask whether both cost the same: their batches take turns, so that both meet the same noise.
in_turn=${before:+--in-turn}
results=$repo/Benchmarks/results/latest
if [ -n "$inside" ]; then
  enter_view
  expectations=$repo/Benchmarks/expectations-inside.json
  in_turn=--in-turn
  results=$repo/Benchmarks/results/inside
fi
output=()
if [ "$save" != no ]; then
  mkdir -p "$repo/Benchmarks/results"
  output=(--markdown "$results.md" --json "$results.json")
fi
run_benchmark "${contenders[@]}" $in_turn --rounds "$rounds" --seconds "$seconds" ${only:+--only "$only"} \
  --scratch "$base/scratch" --expectations "$expectations" "${facts[@]}" ${output+"${output[@]}"}
[ "$save" = no ] || say "results kept in $results.md and $results.json"
