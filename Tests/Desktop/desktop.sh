# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
#
# Starts a desktop's servers, for the tests of apps that use them; read by a shell that has INSULA, POINT, APP and DESKTOP (this
# directory). `desktop` is then the directory of the sockets, and `desktop_run COMMAND...` runs that as the app, with that desktop.
# Sound and Wayland are decoys.
call() { dbus-send --session --print-reply --dest=$1 / $2 2>&1; }
desktop_start() { XDG_RUNTIME_DIR=$desktop exec "$INSULA" run --store "$POINT" "$APP" -- "$@"; }
desktop_run() { (desktop_start "$@"); }
wait_for() {
  for i in $(seq 200); do "$@" && return; sleep 0.05; done
  echo "waited in vain for $*" >&2
  exit 99
}
# Connects to a socket and prints what that says.
says='import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"who are you")
print(s.recv(99).decode())'

desktop=$(mktemp -d)
trap 'kill $servers 2> /dev/null; rm -rf $desktop' EXIT
cd $desktop
mkdir pulse
python3 $DESKTOP/decoy.py ${contexts:-without} wayland-0 pulse/native pipewire-0 & servers=$!
touch cookies
# The server takes a cookie for whatever display it becomes.
cookie=0123456789abcdef0123456789abcdef
xauth -q -f cookies add :0 . $cookie
Xvfb -displayfd 3 -auth $desktop/cookies -nolisten tcp -screen 0 320x240x24 3> display 2> log & servers="$servers $!"
dbus-daemon --session --nofork --address=unix:path=$desktop/bus 2> /dev/null & servers="$servers $!"
wait_for test -s display
wait_for test -S bus
wait_for test -S pipewire-0
number=$(cat display)
xauth -q -f cookies add :$number . $cookie
export DISPLAY=:$number XAUTHORITY=$desktop/cookies WAYLAND_DISPLAY=wayland-0
export DBUS_SESSION_BUS_ADDRESS=unix:path=$desktop/bus PULSE_SERVER=unix:$desktop/pulse/native
