# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Holds the kernel's locks of files: PROGRAM [--synchronous | --slow] FILE...

PROGRAM is silent-filesystem.c, built. Each file is made and written to, from memory that this filesystem would
have to fill: the kernel holds the file's lock as long as that does not happen. A FILE that begins with "read:"
is only read, past the cache, into such memory; one that begins with "late:" is opened at once, and read so
when there is a file "go" beside it, and with "later:" when there is "gone". A slow
program goes on, and waits for its memory each third of a second. Prints "held", and stays until its input ends. Needs a user namespace of the
caller's own (unshare -Urmp), or root.
"""
import mmap, os, subprocess, sys, tempfile, time

program, *files = sys.argv[1:]
options = [files[0].removeprefix("--")] if files[0] in ("--synchronous", "--slow") else []
is_slow = options == ["slow"]
files = files[len(options):]
base = tempfile.mkdtemp()
server = subprocess.Popen([program, base] + options)
end = time.monotonic() + 30
while not os.path.exists(f"{base}/memory"):
    assert server.poll() is None and time.monotonic() < end, "the filesystem is not mounted"
    time.sleep(0.02)
silent = os.open(f"{base}/memory", os.O_RDONLY)
reading, writing = os.pipe()
for name in files:
    if os.fork() == 0:
        is_late = name.startswith(("late:", "later:"))
        go = "/gone" if name.startswith("later:") else "/go"
        is_read = is_late or name.startswith("read:")
        name = name.removeprefix("late:").removeprefix("later:").removeprefix("read:")
        rights = mmap.PROT_READ | (mmap.PROT_WRITE if is_read else 0)
        memory = mmap.mmap(silent, 1 << 30 if is_slow else 4096 if is_read else 100, mmap.MAP_PRIVATE, rights)
        if is_read:
            file = os.open(name, os.O_RDONLY | os.O_DIRECT)
        else:
            file = os.open(name, os.O_WRONLY | os.O_CREAT, 0o666)
        # Its number in the namespace whose /proc this is.
        process = "" if is_late else os.readlink("/proc/self")
        os.write(writing, process.encode() + b"\n")
        while is_late and not os.path.exists(os.path.dirname(name) + go):
            time.sleep(0.05)
        for part in range(1000 if is_slow else 0):
            os.preadv(file, [memoryview(memory)[part << 20 : (part << 20) + 4096]], 0)
        if is_read:
            os.preadv(file, [memory], 0)
        else:
            os.write(file, memoryview(memory))
        os._exit(0)
with os.fdopen(reading) as numbers:
    writers = [next(numbers).strip() for _ in files]
def waits(process):
    with open(f"/proc/{process}/wchan") as file:
        where = file.read()
    return "folio" in where or "request_wait" in where
while not all(waits(writer) for writer in writers if writer):
    assert time.monotonic() < end, "not all files are written to"
    time.sleep(0.05)
print("held", flush=True)
sys.stdin.read()
# Before this process ends: it would wait for the filesystem to close its file.
server.kill()
server.wait()
