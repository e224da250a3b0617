#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
#
# A store on a cluster's filesystem, with two clients on this machine, as two machines have it: the parity list, with the
# differences of Tests/Conformance/known-KIND.txt; SQLite, git, tar and PostgreSQL; parts of the cluster that are killed
# under load and come back; the process that serves, killed under each load of Tests/Kills/kills.py; the lease, by
# Tests/Leases/leases.py.
# usage: cluster.sh [--rounds N] [--kills N] [KIND...]
# KIND is gluster (gluster.sh) or ceph (ceph.sh), and both if none is named; of the lease there are 6 rounds, and of kills
# 20 under each load; 0 leaves them out.
# As root, with Debian's packages that those two name, and postgresql. INSULA and CONFORMANCE name the programs.
set -euo pipefail

rounds=6 kills=20
while [ $# -gt 1 ]; do
  case $1 in
    --rounds) rounds=$2 ;;
    --kills) kills=$2 ;;
    *) break ;;
  esac
  shift 2
done
[ $# -gt 0 ] || set -- gluster ceph
if [ $# -gt 1 ]; then
  for kind; do "$0" --rounds "$rounds" --kills "$kills" "$kind"; done
  exit
fi
kind=$1
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
insula=${INSULA:-$repo/.build/release/insula}
conformance=${CONFORMANCE:-$repo/.build/debug/insula-conformance}
[ -f "$here/$kind.sh" ] || { echo "cluster.sh: no such kind: $kind" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo 'cluster.sh: needs root' >&2; exit 2; }

scratch=$(mktemp -d /var/tmp/insula-cluster-XXXXXX)
chmod 755 "$scratch"
mkdir "$scratch"/{one,two,point}
# shellcheck source=/dev/null
. "$here/$kind.sh"
cleanup() {
  "$insula" unmount "$scratch/point" 2>/dev/null || umount -l "$scratch/point" 2>/dev/null || true
  umount -l "$scratch/one" "$scratch/two" 2>/dev/null || true
  end_cluster
  rm -rf "$scratch"
}
trap cleanup EXIT
say() { echo "$kind: $*"; }
fail() { echo "cluster.sh: $kind: $*" >&2; exit 1; }
for program in $needs "$insula" "$conformance"; do
  command -v "$program" >/dev/null || { echo "cluster.sh: $kind needs $program" >&2; exit 2; }
done

begin_cluster
for client in one two; do mountpoint -q "$scratch/$client" || fail "client $client has not mounted it"; done
"$insula" init "$scratch/one/store" >/dev/null
"$insula" doctor "$scratch/one/store" | grep -A12 '^store\|other machines\|renames\|unnamed' || true
"$insula" mount "$scratch/one/store" "$scratch/point"
work=$scratch/point/Users/Shared/work
mkdir "$work" && chmod 777 "$work"

say 'the parity list'
"$conformance" --grpid --known "$repo/Tests/Conformance/known-$kind.txt" "$work" >"$scratch/parity" ||
  { grep '^not ok' "$scratch/parity"; fail "differs from ext4 in other ways than known-$kind.txt says"; }
tail -n 1 "$scratch/parity"

say 'programs'
(
  cd "$work"
  sqlite3 db 'pragma journal_mode=wal; create table t(a)' >/dev/null
  for writer in 1 2; do
    (for i in $(seq 100); do sqlite3 -cmd '.timeout 20000' db "insert into t values($i)"; done) &
  done
  wait
  [ "$(sqlite3 db 'pragma integrity_check; select count(*) from t')" = $'ok\n200' ] || fail 'SQLite has lost rows'
  git init -q repository && cd repository && git config user.email a@b && git config user.name x
  for i in $(seq 300); do echo "$i" >"f$i"; done
  git add . && git commit -qm x && git fsck --no-progress && git gc -q && [ -z "$(git status --short)" ]
  cd .. && tar cf t.tar repository && mkdir out && tar xf t.tar -C out && diff -r repository out/repository
)
mkdir -m 700 "$work/postgres" && chown postgres "$work/postgres"
"$here/postgres.sh" "$work/postgres" postgres

say 'each part is killed under load, and comes back, three times'
cat >"$scratch/write.py" <<'END'
import os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
end, count = time.monotonic() + 12, 0
while time.monotonic() < end:
    os.write(file, b"%07d\n" % count)
    os.fsync(file)
    count += 1
print(count)
END
for victim in 1 2 1 2 1 2; do
  rm -f "$work/acknowledged"
  python3 "$scratch/write.py" "$work/acknowledged" >"$scratch/count" &
  writer=$!
  sleep 2
  kill_part "$victim"
  sleep 4
  return_part
  wait "$writer" || fail 'a write has failed while one of two parts was there'
  count=$(cat "$scratch/count")
  seq -f %07.0f 0 $((count - 1)) | cmp - "$work/acknowledged" || {
    seq -f %07.0f 0 $((count - 1)) | diff - "$work/acknowledged" | head
    fail "something was lost that was acknowledged before part $victim came back, or after"
  }
  await_parts
  say "$count lines, each of them written to the disk, are there"
done

"$insula" unmount "$scratch/point"
"$insula" check "$scratch/one/store"
wc -l <"$scratch/two/store/tree/Users/Shared/work/acknowledged" | grep -qx "$count" ||
  fail 'the other machine does not see what was written'

if [ "$kills" -gt 0 ]; then
  say 'the process that serves is killed'
  INSULA=$insula "$repo/Tests/Kills/kills.py" --kills "$kills" --share 0.1 --files 500 --store-in "$scratch/one"
fi
if [ "$rounds" -gt 0 ]; then
  say 'the lease'
  mkdir "$scratch/one/leases"
  INSULA=$insula "$repo/Tests/Leases/leases.py" --rounds "$rounds" --places "$scratch/one/leases" "$scratch/two/leases"
fi
say 'all is as it should be'
