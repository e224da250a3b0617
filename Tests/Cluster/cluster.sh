#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
#
# A store on GlusterFS: a volume of two bricks (replica 2) with two clients on this machine, as two machines have it.
# The parity list, with the differences of known-glusterfs.txt; SQLite, git and tar; bricks that are killed under load
# and come back; the lease, with --rounds N of Tests/Leases/leases.py (default 6; 0 leaves it out).
# As root, with Debian's glusterfs-server and glusterfs-client. INSULA and CONFORMANCE name the programs.
set -euo pipefail

rounds=6
[ "${1:-}" != --rounds ] || rounds=${2:?}
repo=$(cd "$(dirname "$0")/../.." && pwd)
insula=${INSULA:-$repo/.build/release/insula}
conformance=${CONFORMANCE:-$repo/.build/debug/insula-conformance}
for program in glusterd gluster "$insula" "$conformance"; do
  command -v "$program" >/dev/null || { echo "cluster.sh: needs $program" >&2; exit 2; }
done
[ "$(id -u)" -eq 0 ] || { echo 'cluster.sh: needs root' >&2; exit 2; }

scratch=$(mktemp -d /var/tmp/insula-cluster-XXXXXX)
chmod 755 "$scratch"
volume=insula-$$ started=''
cleanup() {
  "$insula" unmount "$scratch/point" 2>/dev/null || umount -l "$scratch/point" 2>/dev/null || true
  umount -l "$scratch/one" "$scratch/two" 2>/dev/null || true
  gluster --mode=script volume stop "$volume" force >/dev/null 2>&1 || true
  gluster --mode=script volume delete "$volume" >/dev/null 2>&1 || true
  [ -z "$started" ] || kill "$started" 2>/dev/null || true
  rm -rf "$scratch"
}
trap cleanup EXIT
say() { echo "cluster: $*"; }
fail() { echo "cluster.sh: $*" >&2; exit 1; }

if ! gluster --mode=script volume list >/dev/null 2>&1; then
  glusterd --log-level ERROR -p "$scratch/glusterd.pid"
  for _ in $(seq 100); do [ -s "$scratch/glusterd.pid" ] && break; sleep 0.1; done
  started=$(cat "$scratch/glusterd.pid")
  for _ in $(seq 100); do gluster --mode=script volume list >/dev/null 2>&1 && break; sleep 0.1; done
fi
mkdir "$scratch"/{brick-1,brick-2,one,two,point}
host=$(hostname)
gluster --mode=script volume create "$volume" replica 2 \
  "$host:$scratch/brick-1" "$host:$scratch/brick-2" force >/dev/null
# What a client keeps for itself, or holds back, others do not see; nor does it see itself what it tells the disk.
for option in write-behind stat-prefetch; do
  gluster --mode=script volume set "$volume" "performance.$option" off >/dev/null
done
gluster --mode=script volume start "$volume" >/dev/null
# What another machine has changed is asked for each time.
for client in one two; do
  mount -t glusterfs -o attribute-timeout=0,entry-timeout=0 "$host:/$volume" "$scratch/$client"
done

"$insula" init "$scratch/one/store" >/dev/null
"$insula" doctor "$scratch/one/store" | grep -A12 '^store\|other machines\|renames\|unnamed' || true
"$insula" mount "$scratch/one/store" "$scratch/point"
work=$scratch/point/Users/Shared/work
mkdir "$work" && chmod 777 "$work"

say 'the parity list'
"$conformance" --grpid --known "$repo/Tests/Conformance/known-glusterfs.txt" "$work" >"$scratch/parity" ||
  { grep '^not ok' "$scratch/parity"; fail 'differs from ext4 in other ways than known-glusterfs.txt says'; }
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

say 'each brick is killed under load, and comes back, three times'
brick() { cat /run/gluster/vols/"$volume"/*-"$1".pid; }
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
for victim in brick-1 brick-2 brick-1 brick-2 brick-1 brick-2; do
  rm -f "$work/acknowledged"
  python3 "$scratch/write.py" "$work/acknowledged" >"$scratch/count" &
  writer=$!
  sleep 2
  kill -9 "$(brick "$victim")"
  sleep 4
  gluster --mode=script volume start "$volume" force >/dev/null
  wait "$writer" || fail 'a write has failed while one of two bricks was there'
  count=$(cat "$scratch/count")
  seq -f %07.0f 0 $((count - 1)) | cmp - "$work/acknowledged" || {
    ls -l "$scratch"/brick-*/store/tree/Users/Shared/work/acknowledged
    seq -f %07.0f 0 $((count - 1)) | diff - "$work/acknowledged" | head
    fail "something was lost that was acknowledged before $victim came back, or after"
  }
  for _ in $(seq 60); do
    gluster --mode=script volume heal "$volume" info | grep -q 'entries: [1-9]' || break
    sleep 1
  done
  say "$count lines, each of them written to the disk, are there"
done

"$insula" unmount "$scratch/point"
"$insula" check "$scratch/one/store"
cat "$scratch/two/store/tree/Users/Shared/work/acknowledged" | wc -l | grep -qx "$count" ||
  fail 'the other machine does not see what was written'

if [ "$rounds" -gt 0 ]; then
  say 'the lease'
  mkdir "$scratch/one/leases"
  INSULA=$insula "$repo/Tests/Leases/leases.py" --rounds "$rounds" --places "$scratch/one/leases" "$scratch/two/leases"
fi
say 'all is as it should be'
