#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""What a program tries that was granted VOLUME/mine, and nothing else of a volume: attempts.py VOLUME.

Each line is an attempt and what has come of it: 'got' or the errno. By the user themselves, outside of a view, those
that the volume is capable of succeed; in the view of an app none may. Then it says 'ready', holds what it has open, and
when it gets a line tries all of it again, as who has lost the grant.
"""
import ctypes
import errno
import mmap
import os
import sys

volume = sys.argv[1]
mine, other = f"{volume}/mine", f"{volume}/other"
libc = ctypes.CDLL(None, use_errno=True)


def call(function, *arguments):
    if function(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def append(path):
    with open(path, "ab", buffering=0) as file:
        file.write(b"x")


def expect(value):
    if not value:
        raise OSError(errno.ENODATA, "nothing was got")


def exchanged():
    """RENAME_EXCHANGE of a file of the app's and one that is not."""
    here, there = f"{mine}/mine-1".encode(), f"{volume}/top".encode()
    call(libc.renameat2, -100, here, -100, there, 2)


def by_handle():
    """The parent of the granted directory, by a handle that is made of its own."""
    class Handle(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("handle", ctypes.c_ubyte * 128)]
    handle, mount = Handle(128), ctypes.c_int()
    call(libc.name_to_handle_at, -100, mine.encode(), ctypes.byref(handle), ctypes.byref(mount), 0)
    place = os.open(mine, os.O_RDONLY)
    call(libc.open_by_handle_at, place, ctypes.byref(handle), 0)


def mounted():
    """A bind mount of the directory around, in namespaces of one's own, from which '..' leads elsewhere."""
    child = os.fork()
    if child == 0:
        try:
            call(libc.unshare, 0x10000000 | 0x00020000)
            call(libc.mount, b"none", b"/", None, 0x4000 | 0x40000, None)
            call(libc.mount, volume.encode(), mine.encode(), None, 0x1000 | 0x4000, None)
            os._exit(0 if os.path.exists(f"{mine}/other/secret") else 1)
        except OSError as error:
            os._exit(min(error.errno, 200))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        raise OSError(status, "")


def linked(target, through=""):
    """What is at the end of a link that the program has made itself."""
    name = f"{mine}/link-{os.getpid()}-{abs(hash(target)) % 1000}"
    os.symlink(target, name)
    try:
        return read(name + through)
    finally:
        os.unlink(name)


def moved_and_back(old, new):
    os.rename(old, new)
    os.rename(new, old)


def climbed():
    os.chdir(f"{mine}/sub")
    try:
        return read("../../top")
    finally:
        os.chdir("/")


def made_and_removed(path):
    os.mkdir(path)
    os.rmdir(path)


def hard(old, new):
    os.link(old, new)
    os.unlink(new)


ATTEMPTS = {
    "read beside": lambda: read(f"{volume}/top"),
    "read in another directory": lambda: read(f"{other}/secret"),
    "read by ..": lambda: read(f"{mine}/../other/secret"),
    "read by .. from within": climbed,
    "list the volume": lambda: expect(set(os.listdir(volume)) - {"mine"}),
    "list by ..": lambda: expect(set(os.listdir(f"{mine}/..")) - {"mine"}),
    "stat beside": lambda: os.stat(f"{volume}/top"),
    "write beside": lambda: append(f"{volume}/top"),
    "create beside": lambda: append(f"{volume}/new"),
    "make a directory beside": lambda: made_and_removed(f"{volume}/newdir"),
    "delete beside": lambda: (append(f"{volume}/doomed"), os.unlink(f"{volume}/doomed")),
    "chmod beside": lambda: os.chmod(f"{volume}/top", 0o666),
    "link to what is beside": lambda: linked("../top"),
    "link to another directory": lambda: linked("../other", "/secret"),
    "absolute link": lambda: linked(f"{other}/secret"),
    "link that was there": lambda: read(f"{mine}/old-link"),
    "hard link from beside": lambda: hard(f"{volume}/top", f"{mine}/hard"),
    "hard link to beside": lambda: hard(f"{mine}/mine-1", f"{volume}/hard"),
    "move to beside": lambda: moved_and_back(f"{mine}/mine-1", f"{volume}/moved"),
    "move from beside": lambda: moved_and_back(f"{volume}/top", f"{mine}/top"),
    "move another directory in": lambda: moved_and_back(other, f"{mine}/other"),
    "move the granted directory": lambda: moved_and_back(mine, f"{volume}/renamed"),
    "exchange with what is beside": lambda: (exchanged(), exchanged()),
    "a handle of a file": by_handle,
    "a mount in it": mounted,
    "xattrs of what is beside": lambda: os.listxattr(f"{volume}/top"),
    "truncate beside": lambda: os.truncate(f"{volume}/top", 4),
}
OWN = {
    "own: read": lambda: read(f"{mine}/mine-1"),
    "own: list": lambda: expect("mine-1" in os.listdir(mine)),
    "own: write": lambda: append(f"{mine}/mine-2"),
    "own: create, rename and delete": lambda: (
        append(f"{mine}/a"), os.rename(f"{mine}/a", f"{mine}/sub/b"), os.unlink(f"{mine}/sub/b")),
    "own: make a directory": lambda: made_and_removed(f"{mine}/dir"),
}


def carry_out(attempts):
    for name, attempt in attempts.items():
        try:
            attempt()
            outcome = "got"
        except OSError as error:
            outcome = errno.errorcode.get(error.errno, str(error.errno))
        print(f"{name}: {outcome}", flush=True)


carry_out(ATTEMPTS | OWN)
if len(sys.argv) > 2:
    os.chdir(mine)
    reader, writer = open("mine-1", "rb", buffering=0), open("mine-2", "ab", buffering=0)
    directory = os.open(".", os.O_RDONLY)
    pages = mmap.mmap(reader.fileno(), 4, prot=mmap.PROT_READ)
    pages[0]

    def mapped():
        """A page of the file; whoever may not have it any more ends by SIGBUS."""
        child = os.fork()
        if child == 0:
            pages[0]
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            raise OSError(errno.EFAULT, "")

    print("ready", flush=True)
    sys.stdin.readline()
    carry_out({
        "after: read what is open": lambda: expect(os.pread(reader.fileno(), 4, 0)),
        "after: write what is open": lambda: writer.write(b"x"),
        "after: read what is mapped": mapped,
        "after: read from the working directory": lambda: read("mine-1"),
        "after: create in the working directory": lambda: append("late"),
        "after: list an open directory": lambda: expect(os.listdir(directory)),
        "after: open from an open directory": lambda: os.close(os.open("mine-1", os.O_RDONLY, dir_fd=directory)),
        "after: reopen by /proc": lambda: read(f"/proc/self/fd/{reader.fileno()}"),
    } | {name.replace("own", "after"): attempt for name, attempt in OWN.items()})
