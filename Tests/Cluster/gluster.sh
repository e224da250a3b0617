# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
#
# GlusterFS, for cluster.sh and network.sh: a volume of two bricks (replica 2), and two clients.
# Debian's glusterfs-server and glusterfs-client.

needs='glusterd gluster'
volume=insula-$$ glusterd=''

# Makes the volume as one of the server with this name, which is begun if it does not run.
make_volume() {
  if ! gluster --mode=script volume list >/dev/null 2>&1; then
    glusterd --log-level ERROR -p "$scratch/glusterd.pid"
    for _ in $(seq 100); do [ -s "$scratch/glusterd.pid" ] && break; sleep 0.1; done
    glusterd=$(cat "$scratch/glusterd.pid")
    for _ in $(seq 100); do gluster --mode=script volume list >/dev/null 2>&1 && break; sleep 0.1; done
  fi
  mkdir "$scratch"/brick-{1,2}
  gluster --mode=script volume create "$volume" replica 2 \
    "$1:$scratch/brick-1" "$1:$scratch/brick-2" force >/dev/null
}

begin_cluster() {
  local host client option
  host=$(hostname)
  make_volume "$host"
  # What a client keeps for itself, or holds back, others do not see; nor does it see itself what it tells the disk.
  for option in write-behind stat-prefetch; do
    gluster --mode=script volume set "$volume" "performance.$option" off >/dev/null
  done
  gluster --mode=script volume start "$volume" >/dev/null
  # What another machine has changed is asked for each time.
  for client in one two; do
    mount -t glusterfs -o attribute-timeout=0,entry-timeout=0 "$host:/$volume" "$scratch/$client"
  done
}

kill_part() { kill -9 "$(cat /run/gluster/vols/"$volume"/*-brick-"$1".pid)"; }

# Has it come back.
return_part() { gluster --mode=script volume start "$volume" force >/dev/null; }

# Waits until both have all again.
await_parts() {
  for _ in $(seq 60); do
    gluster --mode=script volume heal "$volume" info | grep -q 'entries: [1-9]' || return 0
    sleep 1
  done
}

end_cluster() {
  gluster --mode=script volume stop "$volume" force >/dev/null 2>&1 || true
  gluster --mode=script volume delete "$volume" >/dev/null 2>&1 || true
  [ -z "$glusterd" ] || kill "$glusterd" 2>/dev/null || true
}
