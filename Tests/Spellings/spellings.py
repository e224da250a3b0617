#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Random names in two spellings, in a directory of a store that ignores case, against a model.

Whatever is done to a name is done in a random spelling of it: other case, composed or decomposed. The model knows a
name by its full case folding, as Python's own tables have it, and the spelling that its maker gave it.
"""
import argparse
import errno
import os
import random
import stat
import sys
import time
import unicodedata

ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ._-",
    "äöüßéèñçåÄÖÜÉŒœæſÅK",
    "αβγδεζηθικλμνξοπρστυφχψωςΆέήίϊΐᾳᾴῷΣ",
    "абвгдежзийёЙЁЖ",
    "한글이름가각힣",
    "ǅǆǰŉﬀﬃİẞԱև",
]


def fold(name):
    nfd = unicodedata.normalize("NFD", name)
    return unicodedata.normalize("NFD", nfd.casefold())


def length(name):
    return len(name.encode())


class Names:
    def __init__(self, random, count):
        self.random = random
        self.bases = []
        while len(self.bases) < count:
            alphabet = random.choice(ALPHABETS) + ALPHABETS[0][:20]
            base = "".join(random.choice(alphabet) for _ in range(random.randint(1, 8))).strip()
            if base.strip("."):
                self.bases.append(base)

    def any(self):
        return self.spelled(self.random.choice(self.bases))

    def spelled(self, name):
        """Another spelling of it, or the same."""
        swapped = "".join(c.swapcase() if self.random.random() < 0.5 else c for c in name)
        form = self.random.choice(["NFC", "NFD", None])
        other = unicodedata.normalize(form, swapped) if form else swapped
        return other if fold(other) == fold(name) and length(other) < 250 else name


class Model:
    """What is in one directory: for each folding the spelling and what it is."""

    def __init__(self):
        self.names = {}

    def find(self, name):
        return self.names.get(fold(name))

    def put(self, name, what):
        self.names[fold(name)] = (name, what)

    def take(self, name):
        return self.names.pop(fold(name))


class Run:
    def __init__(self, path, seed, count):
        self.random = random.Random(seed)
        self.path = path
        self.names = Names(self.random, max(20, min(2000, count // 20)))
        self.models = {"": Model(), "Sub": Model()}
        os.mkdir(os.path.join(path, "Sub"))
        self.models[""].put("Sub", "directory")
        self.next = 0
        self.late = 0
        self.respells = self.probe()

    def probe(self):
        """Whether a rename that changes nothing but case reaches the filesystem."""
        one, other = (os.path.join(self.path, name) for name in ("probe", "PROBE"))
        open(one, "w").close()
        os.rename(one, other)
        respells = "PROBE" in os.listdir(self.path)
        os.unlink(one)
        return respells

    def at(self, place, name):
        part = self.names.spelled("Sub") if place else ""
        return os.path.join(self.path, part, name)

    def step(self):
        place = self.random.choice(["", "Sub"])
        model = self.models[place]
        name = self.names.any()
        if fold(name) == fold("Sub"):
            return
        known = model.find(name)
        action = self.random.choice(
            [self.create, self.create, self.open, self.make, self.link, self.remove, self.remove, self.rename,
             self.rename, self.respell, self.look, self.look, self.symlink])
        action(place, model, name, known)

    def expect(self, error, call):
        try:
            result = call()
        except OSError as caught:
            if caught.errno != error:
                raise AssertionError(f"{errno.errorcode[caught.errno]}, expected {error and errno.errorcode[error]}")
            return None
        if error is not None:
            raise AssertionError(f"done, expected {errno.errorcode[error]}")
        return result

    def create(self, place, model, name, known):
        path = self.at(place, name)
        fd = self.expect(errno.EEXIST if known else None, lambda: os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        if fd is not None:
            self.next += 1
            os.write(fd, str(self.next).encode())
            os.close(fd)
            model.put(name, str(self.next))

    def open(self, place, model, name, known):
        path = self.at(place, name)
        if known and not known[1].isdigit():
            return
        fd = os.open(path, os.O_CREAT | os.O_RDWR)
        if known:
            assert os.read(fd, 99).decode() == known[1], "another file was opened"
        else:
            self.next += 1
            os.write(fd, str(self.next).encode())
            model.put(name, str(self.next))
        os.close(fd)

    def make(self, place, model, name, known):
        self.expect(errno.EEXIST if known else None, lambda: os.mkdir(self.at(place, name)))
        if not known:
            model.put(name, "directory")

    def symlink(self, place, model, name, known):
        self.expect(errno.EEXIST if known else None, lambda: os.symlink("nowhere", self.at(place, name)))
        if not known:
            model.put(name, "link")

    def link(self, place, model, name, known):
        files = [spelling for spelling, what in model.names.values() if what.isdigit()]
        if not files:
            return
        old = self.random.choice(files)
        self.expect(
            errno.EEXIST if known else None,
            lambda: os.link(self.at(place, self.names.spelled(old)), self.at(place, name)))
        if not known:
            model.put(name, model.find(old)[1])

    def remove(self, place, model, name, known):
        call = os.rmdir if known and known[1] == "directory" else os.unlink
        self.expect(None if known else errno.ENOENT, lambda: call(self.at(place, name)))
        if known:
            model.take(name)
            self.gone(place, known[0])

    def gone(self, place, spelling):
        """By no spelling is there anything, the one that was stored least of all."""
        for name in (spelling, self.names.spelled(spelling)):
            self.expect(errno.ENOENT, lambda: os.lstat(self.at(place, name)))

    def rename(self, place, model, name, known):
        if not known:
            return
        where = self.random.choice(["", "Sub"])
        target, new = self.models[where], self.names.any()
        if fold(new) == fold("Sub") or where == place and fold(new) == fold(name):
            return
        there = target.find(new)
        error = None
        if there and there[1] == "directory" and known[1] != "directory":
            error = errno.EISDIR
        if there and there[1] != "directory" and known[1] == "directory":
            error = errno.ENOTDIR
        same = there and known[1] == there[1] and known[1].isdigit()
        self.expect(error, lambda: os.rename(self.at(place, name), self.at(where, new)))
        # Two names of one file stay as they are.
        if error is None and not same:
            model.take(name)
            target.put(new, known[1])
            self.gone(place, known[0])

    def respell(self, place, model, name, known):
        if not known:
            return
        new = self.names.spelled(name)
        # What may be on the way to something keeps its spelling in a directory that is not called as it is stored.
        at = self.at if known[1].isdigit() else lambda *names: os.path.join(self.path, *names)
        os.rename(at(place, known[0]), at(place, new))
        if not self.respells:
            return
        if new not in os.listdir(os.path.join(self.path, place)):
            # It was taken for an earlier one, of which nothing was heard.
            self.late += 1
            time.sleep(2.5)
            os.rename(at(place, known[0]), at(place, new))
        model.take(name)
        model.put(new, known[1])

    def look(self, place, model, name, known):
        found = self.expect(None if known else errno.ENOENT, lambda: os.lstat(self.at(place, name)))
        if not known:
            return
        kinds = {"directory": stat.S_ISDIR, "link": stat.S_ISLNK}
        assert kinds.get(known[1], stat.S_ISREG)(found.st_mode), "something else is there"

    def compare(self):
        for place, model in self.models.items():
            found = sorted(os.listdir(os.path.join(self.path, place)))
            stored = sorted(spelling for spelling, _ in model.names.values())
            assert found == stored, f"{set(found) ^ set(stored)} in '{place}'"
            for spelling, what in model.names.values():
                if what.isdigit():
                    with open(self.at(place, self.names.spelled(spelling))) as file:
                        assert file.read() == what, f"{spelling!r} has something else in it"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", help="an empty directory of the mount")
    parser.add_argument("--names", type=int, default=100_000, help="how often something is done with a name")
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args()
    run = Run(options.directory, options.seed, options.names)
    for index in range(options.names):
        try:
            run.step()
        except (AssertionError, OSError) as error:
            print(f"step {index} of seed {options.seed}: {error}")
            return 1
        if index % 1000 == 999:
            run.compare()
    run.compare()
    count = sum(len(model.names) for model in run.models.values())
    print(f"{options.names} names, {count} left, respelled by rename: {'yes' if run.respells else 'no'}, "
          f"{run.late} at the second try")
    return 1 if run.late > options.names / 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
