#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Makes every kind of request while the daemon dies in the middle of it, and looks at what comes of that.

    trapped.py ORDER KEEPER DIRECTORY BACKING [served] [--all | --few] [ROW...]

ORDER is the file that INSULA_TRAP names, for a debug build; KEEPER is the process that replaces the daemon. BACKING is DIRECTORY
behind the mount. "served" says that reads and writes come to the daemon. With --all the daemon also dies after each system call of
the request, one after the other; with --few only at the worst moment of each.

No call may fail, or succeed, that would not without a death, and what it does must be there once. Prints what did not go so.
"""
import ctypes
import errno
import fcntl
import os
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
import traceback

words = sys.argv[1:]
everything, few = "--all" in words, "--few" in words
served = "served" in words
order_path, keeper, place, backing, *wanted = [word for word in words if word not in ("--all", "--few", "served")]
keeper = int(keeper)
libc = ctypes.CDLL(None, use_errno=True)
order = os.open(order_path, os.O_RDWR)
READ, DONE, NOTED, ANSWERING, ANSWERED, CALL = range(1, 7)
POINTS = {READ: "read", DONE: "done", NOTED: "noted", ANSWERING: "answering", ANSWERED: "answered", CALL: "call"}
(LOOKUP, FORGET, GETATTR, SETATTR, READLINK, SYMLINK, MKNOD, MKDIR, UNLINK, RMDIR, RENAME, LINK, OPEN, READ_DATA, WRITE, STATFS,
 RELEASE, FSYNC, SETXATTR, GETXATTR, LISTXATTR, REMOVEXATTR, FLUSH, OPENDIR, READDIR, RELEASEDIR, FSYNCDIR, GETLK, SETLK, SETLKW,
 ACCESS, CREATE, IOCTL, FALLOCATE, READDIRPLUS, RENAME2, LSEEK, TMPFILE, STATX) = (
    1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22, 23, 24, 25, 27, 28, 29, 30, 31, 32, 33, 34, 35, 39, 43,
    44, 45, 46, 51, 52)
COPY_RANGE = 53 if tuple(int(part) for part in os.uname().release.split(".")[:2]) >= (6, 18) else 47
rows = []


class Wrong(Exception):
    pass


class Again(Exception):
    """It did not come to what was to be tried."""


def row(operation, changes=False, fails=False, notice=False, others=0, only=None):
    """`changes`: it is noted as what can't be done twice. `fails`: it must be refused, which is looked at after each system call.
    `notice`: it has no reply that anyone waits for. `others`: so many requests of the kind come before."""
    def add(function):
        points = [READ] if operation == FORGET else [READ, ANSWERING]
        if changes:
            points += [DONE, NOTED]
        points += [ANSWERED]
        if few:
            points = [ANSWERED if operation == FORGET else DONE if changes else ANSWERING]
        if everything or fails and not few:
            points += [CALL]
        rows.append((function.__name__, operation, only or points, notice, others, function))
        return function
    return add


def give(operation, point, times, others):
    os.pwrite(order, struct.pack("4I", operation, point, times, others), 0)


def deaths():
    return struct.unpack("I", os.pread(order, 4, 16))[0]


def waiting():
    return struct.unpack("I", os.pread(order, 4, 8))[0]


def workers():
    with open(f"/proc/{keeper}/task/{keeper}/children") as file:
        pids = file.read().split()
    found = []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/comm") as file:
                if file.read().strip() != "insula-mounts":
                    found.append(int(pid))
        except OSError:
            pass
    return found


class Trap:
    """The daemon dies once in what is done here, and that gets `error`."""
    operation, point, others, notice, extra = 0, 0, 0, False, 0

    def __init__(self, error=None):
        self.error = error

    def __enter__(self):
        self.before, self.deaths = workers(), deaths()
        give(Trap.operation, Trap.point, 1, Trap.others)

    def __exit__(self, kind, value, trace):
        # Who dies after the answer may not have yet.
        if Trap.notice or Trap.point == ANSWERED:
            end = time.monotonic() + 2
            while waiting() and time.monotonic() < end:
                time.sleep(0.001)
        sprang = waiting() == 0
        give(0, 0, 0, 0)
        if sprang:
            end = time.monotonic() + 10
            while workers() == self.before or not workers():
                if time.monotonic() > end:
                    raise Wrong("no other worker has come")
                time.sleep(0.001)
            after = workers()
            if deaths() - self.deaths != 1 or len(after) != 1 or after == self.before:
                raise Wrong(f"{deaths() - self.deaths} deaths, from {self.before} to {after}")
        got = value.errno if kind and issubclass(kind, OSError) else None
        if kind and got is None:
            return False
        if got != self.error:
            raise Wrong(f"got {errno.errorcode.get(got, got)} instead of {errno.errorcode.get(self.error, self.error)}")
        return True


def same(got, expected, what=""):
    if got != expected:
        raise Wrong(f"{what} {got!r} instead of {expected!r}")


def behind(path):
    return backing + path[len(place):]


def write(path, text, way="w"):
    with open(path, way) as file:
        file.write(text)
    return path


def text(path):
    """What is in a file, which is the same behind the mount."""
    with open(path) as file:
        found = file.read()
    with open(behind(path)) as file:
        same(found, file.read(), "through the mount")
    return found


def names(directory):
    found = sorted(os.listdir(directory))
    same(found, sorted(os.listdir(behind(directory))), "through the mount")
    return found


def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def renameat2(old, new, flags):
    check(libc.renameat2(-100, old.encode(), -100, new.encode(), flags))


def fallocate(file, mode, offset, length):
    check(libc.fallocate(file, mode, ctypes.c_long(offset), ctypes.c_long(length)))


def statx(path, mask=0xfff):
    buffer = ctypes.create_string_buffer(256)
    check(libc.statx(-100, path.encode(), 0x2000, mask, buffer))
    return struct.unpack_from("IIQIIIHHQQ", buffer)


def overtaken(expected, name, act, appear):
    """Does something about a name that was not there when the kernel looked, but is when the daemon does."""
    name = behind(name)
    os.kill(keeper, signal.SIGSTOP)
    before = deaths()
    try:
        give(LOOKUP, ANSWERED, 1, 0)
        child = os.fork()
        if child == 0:
            try:
                act()
                os._exit(0)
            except OSError as error:
                os._exit(error.errno)
        end = time.monotonic() + 5
        while deaths() == before and time.monotonic() < end:
            time.sleep(0.001)
        # Until it has asked for more than the lookup.
        time.sleep(0.02)
        # Another thread of the dying daemon may have been faster.
        isLate = os.path.lexists(name)
        if not isLate:
            appear(name)
        give(Trap.operation, Trap.point, 1, Trap.others)
    finally:
        os.kill(keeper, signal.SIGCONT)
    got = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    # Who dies after the answer may not have yet.
    end = time.monotonic() + (2 if Trap.point == ANSWERED else 0)
    while waiting() and time.monotonic() < end:
        time.sleep(0.001)
    # Or the daemon has died at a lookup on the way there, and the next one has found the name.
    isFound = got == errno.EEXIST or got == expected == 0
    # Or another thread of the dying daemon had begun with the request, which is refused after the second death.
    isRefused = got == errno.EIO and expected != errno.EIO and deaths() - before > 1
    if isLate or isRefused or isFound and waiting() and Trap.point != CALL:
        raise Again()
    give(0, 0, 0, 0)
    Trap.extra = 1
    same(errno.errorcode.get(got, got), errno.errorcode.get(expected, expected), "another process got")


def clients():
    directory = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trapped_rows.py")
    with open(directory) as file:
        exec(compile(file.read(), directory, "exec"), globals())


class Watchdog:
    """Ends the connection if a row hangs: who waits for the daemon can't be ended otherwise."""

    def __init__(self):
        self.until = None
        device = os.stat(place).st_dev
        self.abort = f"/sys/fs/fuse/connections/{os.minor(device)}/abort"
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            time.sleep(0.25)
            if self.until and time.monotonic() > self.until:
                print(f"{self.doing}: hangs", flush=True)
                write(self.abort, "1")
                os._exit(1)


def attempt(number, name, operation, point, notice, others, function):
    Trap.operation, Trap.point, Trap.others, Trap.notice, Trap.extra = operation, point, others, notice, 0
    directory = f"{place}/{number}"
    os.mkdir(directory)
    os.mkdir(f"{directory}/d")
    try:
        function(f"{directory}/d")
        return True
    except Again:
        give(0, 0, 0, 0)
        return False


def main():
    clients()
    os.makedirs(place)
    watchdog = Watchdog()
    number = failures = sprung = 0
    for name, operation, points, notice, others, function in rows:
        if wanted and name not in wanted:
            continue
        for point in points:
            calls = 0
            while True:
                number += 1
                before = deaths()
                watchdog.doing = f"{name}, {POINTS[point]} {calls}"
                watchdog.until = time.monotonic() + 20
                try:
                    for _ in range(10):
                        before, number = deaths(), number + 1
                        if attempt(number, name, operation, point, notice, others + calls, function):
                            break
                    else:
                        raise Wrong("it has not come to what was to be tried")
                    if deaths() == before + Trap.extra and calls == 0 and point != CALL:
                        raise Wrong("the trap has not sprung")
                except (Wrong, OSError, AssertionError) as wrong:
                    give(0, 0, 0, 0)
                    print(f"{watchdog.doing}: {type(wrong).__name__} {wrong}", flush=True)
                    if not isinstance(wrong, Wrong):
                        traceback.print_exc(limit=-2, file=sys.stdout)
                    failures += 1
                sprang = deaths() != before + Trap.extra
                sprung += sprang
                calls += 1
                if point != CALL or not sprang:
                    break
    watchdog.until = None
    print(f"{sprung} deaths in {len(rows)} rows", flush=True)
    return 1 if failures else 0


sys.exit(main())
