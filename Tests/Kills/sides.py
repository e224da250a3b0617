# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Operations on a few names, done in a directory; two directories are compared by what they answer and what they have."""
import ctypes
import errno
import itertools
import os
import shutil
import stat

NAMES = ("x/a", "x/b", "y/a", "y/b")
FIRST = "user.first"
libc = ctypes.CDLL(None, use_errno=True)


def c(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Side:
    """The mount or the plain directory: does operations, and tells what there is."""

    def __init__(self, place):
        self.place = place
        self.held = []

    def at(self, name):
        return f"{self.place}/{name}".encode()

    def prepare(self):
        for name in ("x", "y", "y/b"):
            os.makedirs(self.at(name), mode=0o755)
        with open(self.at("x/a"), "w") as file:
            file.write("first contents")
        os.chmod(self.at("x/a"), 0o640)

    def do(self, step):
        """'ok', or the errno's name."""
        verb, *names = step
        try:
            getattr(self, verb)(*(self.at(name) for name in names))
        except OSError as error:
            return errno.errorcode[error.errno]
        return "ok"

    def with_file(self, path, flags, use):
        file = os.open(path, flags | os.O_CLOEXEC, 0o644)
        try:
            use(file)
        finally:
            os.close(file)

    def create(self, path):
        self.with_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, lambda file: os.write(file, b"made"))

    def write(self, path):
        self.with_file(path, os.O_WRONLY | os.O_APPEND, lambda file: os.write(file, b" and more"))

    def truncate(self, path):
        os.truncate(path, 5)

    def rename(self, old, new):
        self.look_at(old, new)
        os.rename(old, new)

    def look_at(self, *paths):
        """As mv does. A kernel that knows a directory by the name from which another view has moved it can't take the new name
        while it holds the lock of renames, and gives ESTALE."""
        for path in paths:
            os.path.lexists(path)

    def exchange(self, one, other):
        self.look_at(one, other)
        c(libc.renameat2(-100, one, -100, other, 2))

    def link(self, old, new):
        os.link(old, new)

    def unlink(self, path):
        os.unlink(path)

    def mkdir(self, path):
        os.mkdir(path, 0o755)

    def rmdir(self, path):
        os.rmdir(path)

    def chmod(self, path):
        os.chmod(path, 0o711)

    def setxattr(self, path):
        os.setxattr(path, FIRST, b"value")

    def fsync(self, path):
        self.with_file(path, os.O_RDONLY, os.fsync)

    def hold(self, path):
        self.held.append(os.open(path, (os.O_RDONLY | os.O_DIRECTORY if os.path.isdir(path) else os.O_RDWR) | os.O_CLOEXEC))

    def held_state(self):
        """What open files say, and that they can still be used; objects are numbered as they are met."""
        found = []
        for file in self.held:
            try:
                status = os.fstat(file)
            except OSError as error:
                found.append(("lost", errno.errorcode[error.errno]))
                continue
            if stat.S_ISDIR(status.st_mode):
                try:
                    names = sorted(os.listdir(file))
                except OSError as error:
                    names = errno.errorcode[error.errno]
                found.append(("directory", oct(status.st_mode), status.st_nlink > 0, names))
            else:
                os.pwrite(file, b"!", 2)
                found.append(("file", oct(status.st_mode), status.st_nlink, os.pread(file, 100, 0)))
        return found

    def state(self, place=None):
        """All names with what they stand for; hard links are told by the first name of the object."""
        first, found = {}, []
        for name in ("x", "y", *NAMES, *(f"{name}/{more}" for name in NAMES for more in ("a", "b"))):
            path = f"{place or self.place}/{name}"
            try:
                status = os.lstat(path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            same = first.setdefault(status.st_ino, name)
            isFile = stat.S_ISREG(status.st_mode)
            text = open(path, "rb").read() if isFile else sorted(os.listdir(path))
            try:
                attribute = os.getxattr(path, FIRST)
            except OSError as error:
                attribute = errno.errorcode[error.errno]
            found.append((name, same, oct(status.st_mode), status.st_nlink, status.st_size if isFile else 0, text, attribute))
        return found

    def close(self):
        for file in self.held:
            os.close(file)
        self.held = []

    def end(self):
        self.close()
        shutil.rmtree(self.place)


def operations():
    """All that can be done to the names."""
    one = ("create", "write", "truncate", "unlink", "mkdir", "rmdir", "chmod", "setxattr", "fsync", "hold")
    found = [(verb, name) for verb in one for name in NAMES]
    found += [("exchange", a, b) for a, b in itertools.combinations(NAMES, 2)]
    return found + [(verb, a, b) for verb in ("rename", "link") for a, b in itertools.permutations(NAMES, 2)]


def told(steps):
    return "; ".join(" ".join(step) for step in steps)
