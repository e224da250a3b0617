#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
#
# Two machines and a network, on this machine: each has a network namespace, mounts, a /run and a store of its own.
# GlusterFS (two bricks, replica 2) is the server between them: what one writes below /Network/Servers the other reads
# after close, also while a brick is dead; both join the network that lies on it, and run its app. One machine announces
# a WebDAV server by avahi, and the other finds it.
# As root, with Debian's glusterfs-server, glusterfs-client, rclone, avahi-daemon, avahi-utils, libnss-mdns and iproute2.
# INSULA names the program.
set -euo pipefail

repo=$(cd "$(dirname "$0")/../.." && pwd)
insula=${INSULA:-$repo/.build/release/insula}
for program in glusterd gluster rclone avahi-daemon avahi-browse dbus-daemon ip "$insula"; do
  command -v "$program" >/dev/null || { echo "network.sh: needs $program" >&2; exit 2; }
done
[ "$(id -u)" -eq 0 ] || { echo 'network.sh: needs root' >&2; exit 2; }

scratch=$(mktemp -d /var/tmp/insula-network-XXXXXX)
chmod 755 "$scratch"
# shellcheck source=Tests/Cluster/gluster.sh
. "$repo/Tests/Cluster/gluster.sh"
id=$$ bridge=in$(($$ % 100000))
server=10.77.0.1
say() { echo "network: $*"; }
fail() { echo "network.sh: $*" >&2; exit 1; }
# Does something on a machine.
on() { local machine=$1; shift; nsenter -t "$(cat "$scratch/$machine/init")" -m -n -u -- "$@"; }
as_user() {
  local machine=$1
  shift
  on "$machine" setpriv --reuid="insula-net-$id" --regid="insula-net-$id" --clear-groups -- "$@"
}
cleanup() {
  for machine in one two; do
    on "$machine" "$insula" unmount --lazy "$scratch/$machine/point" >/dev/null 2>&1 || true
    # What a machine runs has its directory in its words, or is its namespace's.
    [ ! -s "$scratch/$machine/init" ] || kill -KILL -- "-$(cat "$scratch/$machine/init")" 2>/dev/null || true
    ip netns pids "insula-$id-$machine" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
    ip netns del "insula-$id-$machine" 2>/dev/null || true
  done
  end_cluster
  ip link del "$bridge" 2>/dev/null || true
  rm -rf "$scratch"
}
trap cleanup EXIT

say 'two machines'
ip link add "$bridge" type bridge
ip addr add "$server/24" dev "$bridge"
ip link set "$bridge" up
number=10
for machine in one two; do
  number=$((number + 1))
  mkdir -p "$scratch/$machine/point"
  ip netns add "insula-$id-$machine"
  ip link add "$bridge$number" type veth peer name eth0 netns "insula-$id-$machine"
  ip link set "$bridge$number" master "$bridge" up
  for words in "addr add 10.77.0.$number/24 dev eth0" 'link set eth0 up' 'link set lo up'; do
    # shellcheck disable=SC2086
    ip -n "insula-$id-$machine" $words
  done
  # Its first process, in whose namespaces all else is.
  script='mount --make-rprivate / && mount -t tmpfs none /run && mkdir /run/dbus /run/insula && hostname "$1" &&
    echo $$ >"$0/init" && exec sleep 3600'
  ip netns exec "insula-$id-$machine" setsid unshare -m -u bash -c "$script" "$scratch/$machine" "machine-$machine" \
    </dev/null >/dev/null 2>&1 &
  for _ in $(seq 100); do [ -s "$scratch/$machine/init" ] && break; sleep 0.1; done
done
# Nobody listens, so whoever is reached refuses.
answer=$(on two timeout 20 bash -c 'exec 3<>/dev/tcp/10.77.0.11/9' 2>&1) || true
[[ $answer = *refused* ]] || fail "the machines do not reach each other: $answer"

say 'a server of two bricks between them'
make_volume "$server"
gluster --mode=script volume start "$volume" >/dev/null
for machine in one two; do
  cat >"$scratch/$machine/network.conf" <<END
# What the machines share.
cluster data gluster://$server/$volume
END
  on "$machine" "$insula" init "$scratch/$machine/store" >/dev/null
  on "$machine" "$insula" mount -o "servers=$scratch/$machine/network.conf" "$scratch/$machine/store" \
    "$scratch/$machine/point"
done
one=$scratch/one/point two=$scratch/two/point data=Network/Servers/cluster/data

say 'what one writes the other reads after close'
# Who looks waits for a moment only; a server that takes longer is there a little later.
for machine in one two; do
  for _ in $(seq 60); do on "$machine" ls "$scratch/$machine/point/$data" >/dev/null 2>&1 && break; sleep 1; done
done
on one ls "$one/$data" || { on one "$insula" volume list --store "$one"; fail 'the server is not there'; }
on one mkdir -m 1777 "$one/$data/shared"
for i in $(seq 100); do
  on one sh -c "echo line $i >$one/$data/shared/f$i"
  [ "$(on two cat "$two/$data/shared/f$i")" = "line $i" ] || fail "the other machine does not read f$i as it was written"
  on two sh -c "echo answer $i >$two/$data/shared/f$i"
  # The kernel keeps for a second what it was told.
  [ $((i % 20)) -ne 0 ] || { sleep 1.1; [ "$(on one cat "$one/$data/shared/f$i")" = "answer $i" ] || fail "f$i"; }
done
say '100 files were read as they were written'

say 'a brick is killed under load, and comes back'
on one /usr/bin/python3 - "$one/$data/shared/acknowledged" >"$scratch/count" <<'END' &
import os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
end, count = time.monotonic() + 15, 0
while time.monotonic() < end:
    os.write(file, b"%07d\n" % count)
    os.fsync(file)
    count += 1
print(count)
END
writer=$!
sleep 3
kill_part 1
sleep 5
return_part
wait "$writer" || fail 'a write has failed while one of two bricks was there'
count=$(cat "$scratch/count")
seq -f %07.0f 0 $((count - 1)) | cmp - <(on two cat "$two/$data/shared/acknowledged") ||
  fail 'the other machine lacks something that was acknowledged'
say "$count lines, each of them written to the disk, are read by the other machine"

say 'both join the network, and run its app'
export HOME=$scratch/home
mkdir "$HOME"
"$insula" identity new network --team NETWORK001 >/dev/null
(cd "$scratch" && "$insula" new-app Hello >/dev/null && "$insula" sign Hello.app --identity network >/dev/null)
on one mkdir -p "$one/$data/corp/Applications" "$one/$data/corp/Library/Trust" "$one/$data/corp/Library/Fonts"
"$insula" identity export network | on one sh -c "cat >$one/$data/corp/Library/Trust/root.pem"
on one cp -a "$scratch/Hello.app" "$one/$data/corp/Applications/"
on one sh -c "echo font >$one/$data/corp/Library/Fonts/f"
useradd -m -d "$scratch/user" "insula-net-$id"
trap 'userdel "insula-net-$id" 2>/dev/null || true; cleanup' EXIT
for machine in one two; do
  point=$scratch/$machine/point url=gluster://$server/$volume/corp
  # Without a terminal it tells the roots, and changes nothing.
  told=$(on "$machine" "$insula" network join "$url" --store "$point" 2>&1 </dev/null) || true
  root=$(grep -oE '[0-9a-f]{64}' <<<"$told") || fail "the network can't be joined: $told"
  on "$machine" "$insula" network join "$url" --store "$point" --root "$root"
  [ "$(on "$machine" cat "$point/Network/Library/Fonts/f")" = font ] || fail "no Library on machine $machine"
  on "$machine" "$insula" user add "insula-net-$id" --store "$scratch/$machine/store" >/dev/null
  as_user "$machine" env XDG_RUNTIME_DIR= "$insula" run --store "$point" org.example.hello -- true || fail "Hello does not run on $machine"
done

say 'one announces a server, and the other finds it'
mkdir "$scratch/announced" && echo announced >"$scratch/announced/file"
cat >"$scratch/avahi.conf" <<'END'
[server]
use-ipv6=no
allow-interfaces=eth0
[publish]
publish-workstation=no
END
mkdir "$scratch/services"
cat >"$scratch/services/dav.service" <<'END'
<?xml version="1.0" standalone="no"?><!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group><name>Files</name>
<service><type>_webdav._tcp</type><port>8080</port></service></service-group>
END
mkdir "$scratch/none"
for machine in one two; do
  services=$scratch/none
  [ "$machine" = two ] || services=$scratch/services
  script='mount --bind "$2" /etc/avahi/services && dbus-daemon --system --fork --nopidfile &&
    avahi-daemon --daemonize --no-chroot --no-rlimits -f "$1/avahi.conf"'
  on "$machine" bash -c "$script" x "$scratch" "$services"
done
on one setsid rclone serve webdav "$scratch/announced" --addr 10.77.0.11:8080 --config /dev/null \
  >/dev/null 2>&1 </dev/null &
found=$two/Network/Servers/machine-one/Files/file
for _ in $(seq 40); do
  on two ls "$two/Network/Servers" >/dev/null
  as_user two cat "$found" >"$scratch/found" 2>/dev/null && break
  sleep 1
done
on two "$insula" network list --store "$two"
grep -qx announced "$scratch/found" || fail 'what one has announced, the other does not find'
! on two cat "$found" 2>/dev/null || fail 'root is served what is only announced'

say 'a home on the server, on one machine at a time'
home=insula-home-$id
useradd -M -d "$scratch/user" "$home"
trap 'userdel "$home" 2>/dev/null || true; userdel "insula-net-$id" 2>/dev/null || true; cleanup' EXIT
at_home() {
  local machine=$1
  shift
  on "$machine" setpriv --reuid="$home" --regid="$home" --clear-groups -- env XDG_RUNTIME_DIR= "$insula" run \
    --store "$scratch/$machine/point" org.example.hello -- "$@"
}
on one mkdir "$one/$data/corp/Users"
for machine in one two; do
  on "$machine" "$insula" user add "$home" --home network --store "$scratch/$machine/point"
done
for machine in one two; do
  [ "$(on "$machine" stat -Lc %U "$scratch/$machine/point/Network/Users/$home")" = "$home" ] ||
    fail "the home is not in /Network/Users on machine $machine"
done
container=Users/$home/Library/Containers/org.example.hello/Data
at_home one sh -c 'echo one >Documents/place; sleep 30; echo done >>Documents/place' &
runs=$!
for _ in $(seq 100); do [ -s "$one/$container/Documents/place" ] && break; sleep 0.1; done
at_home two true 2>"$scratch/why" && fail 'it runs on both machines'
grep -q 'runs on machine-one' "$scratch/why" || fail "$(cat "$scratch/why")"
wait "$runs" || fail 'it has not ended well'
[ "$(at_home two cat Documents/place)" = $'one\ndone' ] || fail 'the other machine does not have what it wrote'
at_home one sh -c 'while :; do date +%N >Documents/tick; sleep 0.1; done' 2>/dev/null &
for _ in $(seq 100); do [ -s "$one/$container/Documents/tick" ] && break; sleep 0.1; done
say 'its machine is gone'
on one ip link set eth0 down
began=$SECONDS
until at_home two sh -c 'echo two >Documents/place' 2>"$scratch/why"; do
  [ $((SECONDS - began)) -lt 120 ] || fail "the other machine does not get the lease: $(cat "$scratch/why")"
done
say "the other machine has it after $((SECONDS - began)) s"
on one ip link set eth0 up
tick=$(on two cat "$two/$container/Documents/tick")
sleep 3
[ "$(on two cat "$two/$container/Documents/tick")" = "$tick" ] || fail 'the lost machine writes on'
for machine in one two; do
  on "$machine" "$insula" volume eject "Users/$home" --force --store "$scratch/$machine/point"
done

for machine in one two; do
  on "$machine" "$insula" network leave --store "$scratch/$machine/point"
  on "$machine" "$insula" unmount "$scratch/$machine/point"
  "$insula" check "$scratch/$machine/store"
done
say 'all is as it should be'
