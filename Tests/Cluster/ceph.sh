# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
#
# CephFS, for cluster.sh: a monitor, a manager, two OSDs of 4 GiB (two copies of all), a metadata server, two clients by
# ceph-fuse. Debian's ceph-mon, ceph-mgr, ceph-osd, ceph-mds and ceph-fuse.

needs='ceph-mon ceph-mgr ceph-osd ceph-mds ceph-fuse monmaptool'
configuration=$scratch/ceph/ceph.conf
port=$((20000 + $$ % 20000))
ask_cluster() { timeout 60 ceph -c "$configuration" "$@"; }

begin_cluster() {
  local fsid part client
  fsid=$(cat /proc/sys/kernel/random/uuid)
  mkdir -p "$scratch"/ceph/{mon,mgr,mds,osd-0,osd-1,run}
  cat >"$configuration" <<END
[global]
fsid = $fsid
mon host = 127.0.0.1:$port
mon initial members = a
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = 2
osd pool default min size = 1
osd pool default pg num = 8
osd crush chooseleaf type = 0
# Who is killed is noticed soon.
osd heartbeat grace = 4
osd heartbeat interval = 1
mon osd min down reporters = 1
mon osd down out interval = 600
bluestore block size = 4294967296
osd memory target = 939524096
mon data avail warn = 1
mon data = $scratch/ceph/mon
mgr data = $scratch/ceph/mgr
mds data = $scratch/ceph/mds
osd data = $scratch/ceph/osd-\$id
run dir = $scratch/ceph/run
log file = $scratch/ceph/run/\$name.log
pid file = $scratch/ceph/run/\$name.pid
admin socket = $scratch/ceph/run/\$name.\$pid.asok
ms bind ipv6 = false
[client]
pid file = $scratch/ceph/run/client.\$pid.pid
# The size of a directory is that of all that is in it, and changes with that: tar takes it for damage.
client dirsize rbytes = false
END
  monmaptool --create --add a "127.0.0.1:$port" --fsid "$fsid" "$scratch/ceph/monmap" >/dev/null
  ceph-mon -c "$configuration" -i a --mkfs --monmap "$scratch/ceph/monmap"
  ceph-mon -c "$configuration" -i a
  ceph-mgr -c "$configuration" -i a 2>/dev/null
  for part in 0 1; do
    local uuid
    uuid=$(cat /proc/sys/kernel/random/uuid)
    ask_cluster osd new "$uuid" >/dev/null
    ceph-osd -c "$configuration" -i "$part" --mkfs --osd-uuid "$uuid" 2>/dev/null
    ceph-osd -c "$configuration" -i "$part" 2>/dev/null
  done
  for part in metadata data; do ask_cluster osd pool create "$part" 8 2>/dev/null; done
  ask_cluster fs new files metadata data 2>/dev/null
  ceph-mds -c "$configuration" -i a >/dev/null
  for _ in $(seq 60); do ask_cluster fs dump 2>/dev/null | grep -q up:active && break; sleep 1; done
  await_parts
  for client in one two; do ceph-fuse -c "$configuration" "$scratch/$client" >/dev/null 2>&1; done
}

kill_part() { kill -9 "$(cat "$scratch/ceph/run/osd.$(($1 - 1)).pid")"; }

return_part() {
  local part
  for part in 0 1; do
    kill -0 "$(cat "$scratch/ceph/run/osd.$part.pid")" 2>/dev/null ||
      ceph-osd -c "$configuration" -i "$part" >/dev/null 2>&1
  done
}

await_parts() {
  for _ in $(seq 120); do
    ask_cluster pg stat 2>/dev/null | grep -qE '^([0-9]+) pgs: \1 active\+clean' && return 0
    sleep 1
  done
}

end_cluster() {
  local file
  for file in "$scratch"/ceph/run/*.pid; do kill -9 "$(cat "$file" 2>/dev/null)" 2>/dev/null || true; done
}
