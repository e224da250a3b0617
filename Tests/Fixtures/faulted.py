#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Has each system call of the daemon fail once, and looks at what the daemon makes of that.

    faulted.py ORDER DIRECTORY INSULA STORE [--all | --share N/M] [--apps SCRIPT] [POINT...]

ORDER is the file that INSULA_FAULTS names, for a debug build. DIRECTORY is in the mount; nothing else uses the mount. A first
run of the work lists the points that the daemon passes. Then, for each point and for its first pass, one in the middle and its
last (with --all: for up to twenty passes), the call fails once while the work is done. The work may see errors then, but:

  - the same work without a failure succeeds right after it;
  - the numbers of open files, directories, locks, views and descriptors are as before;
  - the process that serves is still the same one.

--share N/M tries every Mth point, beginning with the Nth. --apps takes a shell script in place of the work on files. POINT is part
of a point's name. Prints what did not go so, and exits with 1 then.
"""
import ctypes
import errno
import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import time

MAX_POINTS, NAME = 512, 112
HASHES = 64
PASSES = HASHES + MAX_POINTS * 8
NAMES = PASSES + MAX_POINTS * 4
TIMEOUT = 30
libc = ctypes.CDLL(None, use_errno=True)

# What each kind of call fails with on a machine that is short of something; all others have a broken disk.
ERRORS = {"open": errno.EMFILE, "pipe": errno.EMFILE, "duplicated": errno.EMFILE, "accept": errno.EMFILE, "map": errno.ENOMEM,
          "make": errno.ENOSPC, "write": errno.ENOSPC, "link": errno.EMLINK, "rename": errno.ENOSPC}


def error_of(name):
    word = name.split(" ", 1)[1].split("(")[0]
    return next((code for part, code in ERRORS.items() if word.lower().startswith(part)), errno.EIO)


class Order:
    def __init__(self, path):
        self.file = os.open(path, os.O_RDWR)

    def give(self, process, point=0, error=0, skipped=0):
        os.pwrite(self.file, struct.pack("iIiII", process, point, error, skipped, 0), 0)

    def hits(self):
        return struct.unpack("I", os.pread(self.file, 4, 16))[0]

    def points(self):
        """Name, number and passes of each."""
        hashes = struct.unpack(f"{MAX_POINTS}Q", os.pread(self.file, MAX_POINTS * 8, HASHES))
        passes = struct.unpack(f"{MAX_POINTS}I", os.pread(self.file, MAX_POINTS * 4, PASSES))
        names = os.pread(self.file, MAX_POINTS * NAME, NAMES)
        return [(names[i * NAME:(i + 1) * NAME].split(b"\0")[0].decode(), i + 1, passes[i])
                for i in range(MAX_POINTS) if hashes[i]]

    def forget_passes(self):
        os.pwrite(self.file, bytes(MAX_POINTS * 4), PASSES)


def c(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def files(directory):
    """The steps of the work on files, each apart, so that one that fails keeps no other from being done."""
    at = lambda name: os.path.join(directory, name)

    def write(name, text="some text", way="w"):
        with open(at(name), way) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def opened(name, flags, use):
        file = os.open(at(name), flags, 0o644)
        try:
            use(file)
        finally:
            os.close(file)

    def lock(file):
        fcntl.lockf(file, fcntl.LOCK_EX)
        fcntl.lockf(file, fcntl.LOCK_UN)
        fcntl.flock(file, fcntl.LOCK_SH)

    def copy(file):
        target = os.open(at("copied"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            os.copy_file_range(file, target, 9)
        finally:
            os.close(target)

    def unnamed(file):
        os.write(file, b"x")
        c(libc.linkat(-100, f"/proc/self/fd/{file}".encode(), -100, at("named").encode(), 0x400))

    return [
        lambda: os.mkdir(directory),
        lambda: write("a"), lambda: write("b"), lambda: write("a", "more", "a"),
        lambda: os.mkdir(at("d")), lambda: os.mkdir(at("e")), lambda: write("d/f"),
        lambda: open(at("a")).read(), lambda: os.stat(at("a")), lambda: os.statvfs(directory),
        lambda: os.chmod(at("a"), 0o600), lambda: os.utime(at("a"), (1, 2)), lambda: os.truncate(at("a"), 3),
        lambda: os.chown(at("a"), os.getuid(), os.getgid()),
        lambda: os.setxattr(at("a"), "user.note", b"x"), lambda: os.getxattr(at("a"), "user.note"),
        lambda: os.listxattr(at("a")), lambda: os.removexattr(at("a"), "user.note"),
        lambda: os.getxattr(at("a"), "system.nfs4_acl"),
        lambda: os.link(at("a"), at("l")), lambda: os.symlink("a", at("s")), lambda: os.readlink(at("s")),
        lambda: os.mkfifo(at("p")), lambda: os.rename(at("b"), at("d/b")), lambda: os.rename(at("d/b"), at("c")),
        lambda: c(libc.renameat2(-100, at("d").encode(), -100, at("e").encode(), 2)),
        lambda: os.listdir(directory), lambda: [entry.stat() for entry in os.scandir(directory)],
        lambda: opened("c", os.O_RDWR, lock), lambda: opened("c", os.O_RDONLY, copy),
        lambda: opened("c", os.O_RDWR, lambda file: os.posix_fallocate(file, 0, 8192)),
        lambda: opened("c", os.O_RDONLY, lambda file: os.lseek(file, 0, os.SEEK_DATA)),
        lambda: opened("c", os.O_RDWR | os.O_TRUNC, lambda file: os.pwrite(file, b"y" * 4096, 0)),
        lambda: opened("x", os.O_RDWR | os.O_CREAT | os.O_EXCL, lambda file: os.unlink(at("x"))),
        lambda: opened("", os.O_RDWR | os.O_TMPFILE, unnamed),
        lambda: opened("", os.O_RDONLY | os.O_DIRECTORY, os.fsync),
        lambda: os.unlink(at("l")), lambda: os.unlink(at("p")), lambda: os.rmdir(at("d")),
        lambda: shutil.rmtree(directory),
    ]


class Work:
    """Does it; strictly, each step must succeed."""

    def __init__(self, place, script):
        self.place, self.script, self.number = place, script, 0

    def run(self, strictly):
        if self.script:
            done = subprocess.run(["sh", "-ec" if strictly else "-c", self.script], stdin=subprocess.DEVNULL, timeout=300,
                                  capture_output=True, text=True, errors="replace")
            return f"{done.stdout}{done.stderr}exit status {done.returncode}" if strictly and done.returncode else None
        self.number += 1
        directory = os.path.join(self.place, f"work-{self.number}")
        for number, step in enumerate(files(directory)):
            try:
                step()
            except OSError as error:
                if strictly:
                    return f"step {number}: {error}"
        return None

    def clean(self):
        for name in [] if self.script else os.listdir(self.place):
            shutil.rmtree(os.path.join(self.place, name))


class Daemon:
    COUNTS = ("openFiles", "openDirectories", "locks", "views", "descriptors")

    def __init__(self, insula, store):
        self.insula, self.store = insula, store

    def status(self):
        """What the daemon says of itself; on a busy machine it may not have answered the command in time."""
        end = time.monotonic() + TIMEOUT
        while "pid" not in (found := self.asked()) and time.monotonic() < end:
            time.sleep(0.1)
        return found

    def asked(self):
        done = subprocess.run([self.insula, "status", self.store, "--json"], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=TIMEOUT)
        found = json.loads(done.stdout)
        return {**found, **found.get("counts", {})}

    def counts(self):
        found = self.status()
        return {key: found[key] for key in self.COUNTS}


def differences(daemon, before):
    """What does not come back. The kernel closes in the background, and the daemon gives descriptors back with time."""
    end = time.monotonic() + TIMEOUT
    while True:
        now = daemon.counts()
        more = {key: (before[key], now[key]) for key in now if now[key] > before[key]}
        if not more or time.monotonic() > end:
            return more
        time.sleep(0.02)


def attempt(order, daemon, work, process, before, point, skipped):
    """What is wrong after one failure; None if the call was not made this time."""
    name, number, _ = point
    order.give(process, number, error_of(name), skipped)
    work.run(strictly=False)
    has_failed = order.hits() > 0
    order.give(process)
    wrong = []
    if (found := daemon.status()).get("pid") != process:
        return [f"the process that serves has died, or does not answer: {found}"], has_failed
    try:
        work.clean()
    except OSError as error:
        wrong.append(f"cleaning up: {error}")
    if said := work.run(strictly=True):
        wrong.append(f"the next work: {said}")
    if more := differences(daemon, before):
        wrong.append("not given back: " + ", ".join(f"{key} {old} -> {new}" for key, (old, new) in more.items()))
    return wrong, has_failed


def passes_of(count, everything):
    if everything:
        return range(min(count, 20))
    return sorted({0, count // 2, count - 1})


def main():
    words = sys.argv[1:]
    everything, share, script = "--all" in words, (0, 1), None
    words = [word for word in words if word != "--all"]
    for option in ("--share", "--apps"):
        if option in words:
            place = words.index(option)
            value = words[place + 1]
            del words[place:place + 2]
            if option == "--share":
                share = tuple(int(part) for part in value.split("/"))
            else:
                script = value
    order_path, directory, insula, store, *wanted = words
    order, daemon, work = Order(order_path), Daemon(insula, store), Work(directory, script)
    process = daemon.status()["pid"]
    # The second time everything that is made once is there.
    for _ in range(2):
        if said := work.run(strictly=True):
            sys.exit(f"the work fails without a failure: {said}")
    order.give(process)
    order.forget_passes()
    work.run(strictly=True)
    points = [point for point in order.points() if point[2]]
    before = daemon.counts()
    failures = tried = hit = 0
    chosen = [point for point in points if not wanted or any(word in point[0] for word in wanted)][share[0]::share[1]]
    for point in chosen:
        for skipped in passes_of(point[2], everything):
            wrong, has_failed = attempt(order, daemon, work, process, before, point, skipped)
            tried, hit = tried + 1, hit + has_failed
            if wrong:
                failures += 1
                print(f"{point[0]}, pass {skipped}, {errno.errorcode[error_of(point[0])]}: {'; '.join(wrong)}", flush=True)
                if daemon.status().get("pid") != process:
                    return 1
                # Each is told of once.
                before = {key: max(before[key], count) for key, count in daemon.counts().items()}
    print(f"{hit} calls have failed in {tried} attempts at {len(chosen)} of {len(points)} points; {failures} with consequences")
    if hit * 2 < tried:
        print("too few calls have failed to say anything")
        return 1
    return 1 if failures else 0


sys.exit(main())
