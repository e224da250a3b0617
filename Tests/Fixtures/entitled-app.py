#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""An app that has private files open while consent to them comes and goes.

usage: entitled-app.py NAME PATH...

For each state it says that it is ready, by a file NAME-ready-N in its Documents, waits for NAME-go-N, and prints
what it can do then: open each of the paths, read what it had open, and look at what it had mapped.
"""
import mmap
import os
import sys
import time

own = os.environ["HOME"] + "/Documents/" + sys.argv[1]
paths = [os.environ["HOME_OF_USER"] + "/" + name for name in sys.argv[2:]]
states = 0


def change():
    """Waits until the state has changed."""
    global states
    states += 1
    open(f"{own}-ready-{states}", "w").close()
    end = time.monotonic() + 100
    while not os.path.exists(f"{own}-go-{states}"):
        if time.monotonic() > end:
            print("nobody has changed anything")
            sys.exit(9)
        time.sleep(0.02)


def outcome(body):
    try:
        body()
        return "ok"
    except OSError as error:
        return str(error.errno)


def touched(memory):
    """What becomes of a process that looks at it."""
    child = os.fork()
    if child == 0:
        os._exit(0 if memory[0] else 1)
    status = os.waitpid(child, 0)[1]
    return "ok" if status == 0 else f"signal {os.WTERMSIG(status)}"


def tell(what, outcomes):
    print(what, *sorted(set(outcomes)), flush=True)


def opened():
    return [outcome(lambda: os.close(os.open(path, os.O_RDONLY))) for path in paths]


def look(what):
    tell(what + " opens", opened())


def mapped(file):
    """A map that shares pages with others where that is to be had, and else the process's own."""
    try:
        return mmap.mmap(file, 0, prot=mmap.PROT_READ)
    except OSError:
        return mmap.mmap(file, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)


def hold():
    files = [os.open(path, os.O_RDONLY) for path in paths]
    return files, [mapped(file) for file in files]


def use(what, held):
    tell(what + " reads", [outcome(lambda: os.pread(file, 1, 0)) for file in held[0]])
    tell(what + " maps", [touched(memory) for memory in held[1]])


look("at first")
change()
look("allowed")
held = hold()
use("allowed", held)
change()
look("denied")
use("denied", held)
change()
look("allowed again")
held = hold()
change()
# What an administrator says is seen within a second or two.
end = time.monotonic() + 60
while "ok" in [outcome(lambda: os.pread(file, 1, 0)) for file in held[0]] and time.monotonic() < end:
    time.sleep(0.05)
look("restricted")
use("restricted", held)
change()
end = time.monotonic() + 60
while set(opened()) != {"ok"} and time.monotonic() < end:
    time.sleep(0.05)
look("restricted no more")
