# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Passes a daemon what a filesystem has that falls silent: PROGRAM SOCKET WAY.

PROGRAM is silent-filesystem.c, built. With the way "file", an open file of an ordinary FUSE mount is passed;
with "directory", one of an overlay above such a mount, to be added as a volume, in a user namespace of the
caller's own (unshare -Urm). Prints "passed", and stays until its input ends.
"""
import array, os, signal, socket, subprocess, sys, tempfile, time

program, place, way = sys.argv[1:]
base = tempfile.mkdtemp()
for name in "mounted", "empty", "overlay":
    os.mkdir(f"{base}/{name}")
server = subprocess.Popen([program, f"{base}/mounted"])
end = time.monotonic() + 20
while not os.path.isdir(f"{base}/mounted/directory"):
    assert server.poll() is None and time.monotonic() < end, "the filesystem is not mounted"
    time.sleep(0.02)
if way == "file":
    passed = os.open(f"{base}/mounted/file", os.O_RDONLY)
else:
    options = f"lowerdir={base}/mounted:{base}/empty"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, f"{base}/overlay"], check=True)
    passed = os.open(f"{base}/overlay/directory", os.O_RDONLY | os.O_DIRECTORY)
    server.send_signal(signal.SIGUSR1)
caller = socket.socket(socket.AF_UNIX)
caller.settimeout(20)
caller.connect(place)
caller.send(b'{"verb":"pass"}\n')
caller.recv(4096)
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [passed]))]
caller.sendmsg([b"\n"], rights)
caller.recv(4096)
if way == "directory":
    caller.send(
        b'{"verb":"volume","volume":{"deed":"add","wish":{"ignoresOwners":false,"isOnDemand":false,'
        b'"isReadOnly":false,"source":{"directory":{}}}}}\n')
print("passed", flush=True)
sys.stdin.read()
server.kill()
server.wait()
if way == "file":
    subprocess.run(["fusermount3", "-u", "-z", f"{base}/mounted"])
