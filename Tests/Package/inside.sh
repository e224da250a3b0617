#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# What package-test.sh does in the clean root, as its first process. Stops at the first thing that is not as it should be.
set -eu
cd /root

step() { printf '== %s\n' "$*"; }
fail() { printf 'package-test: FAILED: %s\n' "$*" >&2; exit 1; }
as_anna() { runuser -u anna -- env HOME=/home/anna USER=anna PATH="$PATH" sh -euc "cd; $1"; }
is_mounted() { grep -q " $1 fuse.insula " /proc/self/mounts; }
server() { insula status "$1" | sed -n 's/.*pid \([0-9]*\)).*/\1/p' | head -n 1; }
runs() { cat /proc/[0-9]*/comm 2>/dev/null | grep -qx "$1"; }
installed() { dpkg-query -W -f '${Status} ${Version}' insula 2>/dev/null; }

# wait_for WHAT TEST : a quarter of a minute at most.
wait_for() {
  tries=0
  until eval "$2"; do
    tries=$((tries + 1))
    [ "$tries" -lt 150 ] || fail "waited in vain until $1"
    sleep 0.1
  done
}

step "install"
! command -v swift >/dev/null || fail "the root is not clean"
apt-get install -y --no-install-recommends ./insula_first.deb >install.log 2>&1 || { cat install.log; fail "not installed"; }
! grep -q 'not found' <<END || fail "libraries are missing"
$(ldd /usr/bin/insula)
END
dpkg -V insula
insula version
# It has been three times as much. What a machine loads of it at each command counts, and what people download. One call of
# Substring.contains(_: String) brings in the parser of regular expressions, nearly a megabyte.
[ "$(stat -c %s /usr/bin/insula)" -le 14500000 ] || fail "the program has more than 14.5 MB"
dpkg -L insula | grep -q '/usr/share/man/man1/insula-mount.1.gz' || fail "no manual"
# What these units refer to is all there; systemd itself does not run here.
systemd-analyze verify --man=no insula.service
XDG_RUNTIME_DIR=/run systemd-analyze verify --user --man=no /usr/lib/systemd/user/insula.service \
  /usr/lib/systemd/user/insula-agent.service /usr/lib/systemd/user/insula-backup.timer \
  /usr/lib/systemd/user/insula-lock.service
systemd-analyze verify --man=no insula-backup.timer insula-lock.service
! is_mounted /insula || fail "mounted without being asked"

step "a store, mounted by a line in fstab"
useradd -m -s /bin/sh anna
insula init
mkdir /insula
echo '/var/lib/insula  /insula  fuse.insula  defaults,nofail  0  0' >/etc/fstab
mount -a
is_mounted /insula || fail "mount -a did not mount"
umount /insula
wait_for "the daemon has ended" '! insula status >/dev/null 2>&1 || [ $? -eq 6 ]'
mount.insula /var/lib/insula /insula
is_mounted /insula || fail "mount.insula did not mount"
insula unmount
mount -t insula /var/lib/insula /insula
insula unmount
mount /insula
is_mounted /insula || fail "mount /insula did not mount"
insula user add anna

step "an app"
as_anna 'insula new-app Note >/dev/null; insula identity new anna --team EXAMPLE01 >/dev/null
  insula identity export anna >root.pem; insula trust add root.pem >/dev/null
  insula sign Note.app --entitlements Note.entitlements; insula verify Note.app'
insula trust add /home/anna/root.pem --store /var/lib/insula
insula install /home/anna/Note.app
not_shown=
if as_anna 'unshare --user true'; then
  as_anna 'insula run org.example.note' >run.log 2>&1 || { cat run.log; fail "the app did not run"; }
  grep 'Hello from Note' run.log
else
  not_shown="THE APP WAS NOT RUN: this kernel does not let an ordinary user make a user namespace here."
  echo "$not_shown" >&2
fi

step "the log"
insula log >log.txt
cat log.txt
grep -q 'mounted the store (at /insula, ' log.txt || fail "the mount is not in the log"
grep -q 'installed org.example.note ' log.txt || fail "the app is not in the log"
if [ -z "$not_shown" ]; then
  wait_for "the end of the app is in the log" 'as_anna "insula log" >log.txt && grep -q " ended org.example.note" log.txt'
  grep -q 'launched org.example.note, ' log.txt || fail "the start of the app is not in the log"
  grep -q 'ended org.example.note, .*, exit status 0)' log.txt || { cat log.txt; fail "the log does not say how it ended"; }
fi

step "a store of a user's own"
as_anna 'insula init >/dev/null; insula mount; echo mine >Insula/Users/Shared/mine'
as_anna 'mountpoint -q Insula' || fail "a user could not mount"

step "a mount point that a shell would read otherwise"
# A blank before a digit, a pattern, and a name that it fits.
odd='/srv/Disk 2*'
mkdir -p "$odd" '/srv/Disk 2a'
insula init /srv/store >/dev/null
insula mount /srv/store "$odd"
odd_before=$(server "$odd")
# Anybody may call a filesystem so.
mkdir -p /srv/forged
mount -i -t fuse.insula -o fd=9,rootmode=40000,user_id=1000,group_id=1000 none /srv/forged 9<>/dev/fuse ||
  fail "no filesystem was forged"

step "an upgrade under a mount that is in use"
as_anna 'echo $$ >writer; exec >>/insula/Users/anna/Documents/diary; while :; do echo line; sleep 0.05; done' &
writer=$!
diary=/insula/Users/anna/Documents/diary
lines() { wc -l <"$diary"; }
wait_for "the writer writes" '[ -s "$diary" ]'
before=$(server /insula) at=$(lines)
dpkg -i insula_99.1.deb >upgrade.log 2>&1 || { cat upgrade.log; fail "not upgraded"; }
cat upgrade.log
case $(installed) in *' installed 99.1') ;; *) fail "$(installed)" ;; esac
is_mounted /insula || fail "the upgrade unmounted the store"
[ "$(server /insula)" != "$before" ] || fail "the old program still serves"
[ "$(server "$odd")" != "$odd_before" ] || fail "the old program still serves $odd"
grep -q 'previous version goes on serving what users have mounted: .*/home/anna/Insula' upgrade.log || fail "not told of users' mounts"
wait_for "the writer goes on" '[ "$(lines)" -gt $((at + 10)) ]'
kill -0 "$writer" || fail "the writer has ended"
insula log | grep -q 'replaced the process that serves the store' || fail "the log does not tell of the upgrade"

step "an upgrade to a program that can't take over"
before=$(server /insula)
dpkg -i insula_99.2.deb >upgrade.log 2>&1 || { cat upgrade.log; fail "not upgraded"; }
cat upgrade.log
grep -q 'the previous version goes on serving /insula' upgrade.log || fail "not told that the old program serves on"
[ "$(server /insula)" = "$before" ] || fail "the old program was stopped"
at=$(lines)
wait_for "the writer goes on" '[ "$(lines)" -gt $((at + 10)) ]'

step "removal while the mount is in use"
if dpkg -r insula >remove.log 2>&1; then cat remove.log; fail "removed under a mount in use"; fi
cat remove.log
grep -q 'was not removed because a store is still mounted' remove.log || fail "not told why"
case $(installed) in *' installed 99.2') ;; *) fail "$(installed)" ;; esac
is_mounted /insula || fail "a busy store was unmounted"

step "removal"
kill "$(cat /home/anna/writer)"
wait "$writer" || true
wait_for "nobody has the diary open" '! ls -l /proc/[0-9]*/fd 2>/dev/null | grep -q " $diary\$"'
dpkg -r insula >remove.log 2>&1 || { cat remove.log; fail "not removed"; }
cat remove.log
! grep " fuse.insula " /proc/self/mounts || fail "still mounted"
wait_for "all daemons have ended" '! runs insula && ! runs insula.real'
[ ! -e /usr/bin/insula ] || fail "still there"

step "purge"
dpkg -P insula >purge.log 2>&1
cat purge.log
for store in /var/lib/insula /home/anna/.local/share/insula; do
  grep -q "  $store\$" purge.log || fail "purge does not name $store"
  [ -f "$store/store.plist" ] || fail "$store is gone"
done
[ "$(cat /home/anna/.local/share/insula/tree/Users/Shared/mine)" = mine ] || fail "a user's data is gone"
count=$(grep -c '^line$' /var/lib/insula/tree/Users/anna/Documents/diary)
[ "$count" -eq "$(wc -l </var/lib/insula/tree/Users/anna/Documents/diary)" ] && [ "$count" -gt 20 ] || fail "data is damaged"

step "install again: the same store"
dpkg -i insula_first.deb >install.log 2>&1 || { cat install.log; fail "not installed again"; }
mount -a
[ "$(wc -l </insula/Users/anna/Documents/diary)" -eq "$count" ] || fail "the store is not the same"
insula check
insula unmount
[ -z "$not_shown" ] || echo "$not_shown" >&2
echo "The package can be installed, used, upgraded and removed."
