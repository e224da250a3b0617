#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Kills the daemon and damages what it leaves before the next one can look at it, again and again.

    damaged.py INSULA OPTIONS SCRATCH ROUNDS SEED

Mounts a store with these options for each round. After it the mount must go on, or be gone with a line in the log: nothing hangs,
and nobody is shown what is another file's. Prints what did not go so.
"""
import errno
import mmap
import os
import random
import signal
import subprocess
import sys
import time

insula, options, scratch, rounds, seed = sys.argv[1:]
COUNT = 30
CLIENT = """
import errno, os, sys
place, count = sys.argv[1], int(sys.argv[2])
files = [os.open(f"{place}/file {number}", os.O_RDWR) for number in range(count)]
gone = os.open(f"{place}/gone", os.O_RDWR | os.O_CREAT); os.write(gone, b"nameless"); os.unlink(f"{place}/gone")
os.chdir(f"{place}/inner")
print("ready", flush=True)
sys.stdin.readline()
lost = 0
def attempt(body):
    global lost
    try:
        return body()
    except OSError as error:
        lost += 1
        if error.errno in (errno.EIO, errno.ENOTCONN, errno.ECONNABORTED, errno.EBADF, errno.ESTALE, errno.ENOENT):
            return None
        raise
for number in range(count):
    wanted = f"text of {number}".encode()
    for found in (attempt(lambda: os.pread(files[number], 100, 0)),
                  attempt(lambda: open(f"{place}/file {number}", "rb").read(100))):
        assert found is None or found.split(b"\\0")[0] == wanted, (number, found)
    attempt(lambda: os.pwrite(files[number], f"mark {number} ".encode(), 200))
found = attempt(lambda: os.pread(gone, 100, 0))
assert found in (None, b"nameless"), found
attempt(lambda: os.listdir("."))
attempt(lambda: open("new", "w").close())
print("lost", lost, flush=True)
"""


def run(*words, limit=30):
    return subprocess.run(words, timeout=limit, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def worker(pid):
    for child in children(pid):
        with open(f"/proc/{child}/comm") as file:
            if file.read().strip() != "insula-mounts":
                return child
    raise RuntimeError("there is no worker")


def memories(pid):
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{name}"
        try:
            if os.readlink(path).startswith("/memfd:insula-"):
                found.append(os.open(path, os.O_RDWR))
        except OSError:
            pass
    return found


def damage(pid, chance):
    """Changes some words where there are any."""
    files = memories(pid)
    extents = []
    for file in files:
        at, size = 0, os.fstat(file).st_size
        while at < size:
            try:
                start = os.lseek(file, at, os.SEEK_DATA)
            except OSError:
                break
            at = os.lseek(file, start, os.SEEK_HOLE)
            extents.append((file, start, at))
    words = []
    for file, start, end in extents:
        data = os.pread(file, end - start, start)
        words += [(file, start + at) for at in range(0, len(data), 4) if data[at:at + 4] != b"\0" * 4]
    said = []
    for _ in range(chance.choice([1, 1, 2, 5, 20, 200])):
        file, at = chance.choice(words)
        before = os.pread(file, 4, at)
        value = chance.choice([b"\0" * 4, b"\xff" * 4, chance.randbytes(4), bytes([before[0] ^ 1 << chance.randrange(8)]) + before[1:]])
        os.pwrite(file, value, at)
        said.append(f"{files.index(file)}:{at} {before.hex()}->{value.hex()}")
    for file in files:
        os.close(file)
    return said


def once(number, chance):
    base = f"{scratch}/{number}"
    store, point = f"{base}/store", f"{base}/point"
    os.makedirs(point)
    run(insula, "init", store)
    log = open(f"{base}/log", "wb")
    words = [insula, "mount", "--foreground", store, point] + [word for option in options.split() for word in ("-o", option)]
    keeper = subprocess.Popen(words, stdout=log, stderr=log)
    client, said, failure = None, [], None
    try:
        end = time.monotonic() + 20
        while not os.path.ismount(point) or "is mounted at" not in open(f"{base}/log").read():
            if time.monotonic() > end or keeper.poll() is not None:
                raise RuntimeError("it was not mounted")
            time.sleep(0.005)
        connection = os.minor(os.stat(point).st_dev)
        place = f"{point}/Users/Shared/place"
        os.makedirs(f"{place}/inner")
        for index in range(COUNT):
            with open(f"{place}/file {index}", "w") as file:
                file.write(f"text of {index}")
        client = subprocess.Popen([sys.executable, "-c", CLIENT, place, str(COUNT)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if client.stdout.readline() != "ready\n":
            raise RuntimeError("the client is not ready")
        os.kill(keeper.pid, signal.SIGSTOP)
        os.kill(worker(keeper.pid), signal.SIGKILL)
        said = damage(keeper.pid, chance)
        os.kill(keeper.pid, signal.SIGCONT)
        try:
            out, _ = client.communicate("go\n", timeout=20)
        except subprocess.TimeoutExpired:
            failure = "the client hangs"
            with open(f"/sys/fs/fuse/connections/{connection}/abort", "w") as file:
                file.write("1")
        else:
            if client.returncode or not out.startswith("lost"):
                failure = f"the client: {out}"
        for index in range(COUNT):
            with open(f"{store}/tree/Users/Shared/place/file {index}", "rb") as file:
                rest = file.read()[200:]
            if rest not in (b"", f"mark {index} ".encode()):
                failure = f"something else was written to file {index}: {rest}"
        run(insula, "unmount", "--lazy", point)
        try:
            keeper.wait(10)
        except subprocess.TimeoutExpired:
            failure = failure or "the keeper does not end"
        if os.path.ismount(point):
            failure = failure or "it is still mounted"
    finally:
        if client and client.poll() is None:
            client.kill()
        if keeper.poll() is None:
            for child in children(keeper.pid):
                os.kill(child, signal.SIGKILL)
            keeper.kill()
            keeper.wait()
        subprocess.run(["umount", "-l", point], stderr=subprocess.DEVNULL)
    with open(f"{base}/log", errors="replace") as file:
        text = file.read()
    if failure:
        print(f"round {number}: {failure}\n  {', '.join(said)[:500]}\n{text}", flush=True)
    return failure is None, "serving again" in text


def main():
    failures = served = 0
    for number in range(int(rounds)):
        isRight, wentOn = once(number, random.Random(f"{seed} {number}"))
        failures += not isRight
        served += wentOn
    print(f"{served} of {rounds} went on, {failures} failures")
    return 1 if failures or served == 0 else 0


sys.exit(main())
