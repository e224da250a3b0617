#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Does every sequence of two and of three operations, kills the worker after each step, and compares with a plain directory.

usage: INSULA=path/to/insula sequences.py [--length 2|3] [--share N] [--seed S] [--no-kills] [-o OPTION] [SEQUENCE...]

There are two directories, x and y, with two names each: x/a is a file, x/b and y/a are not there, y/b is a directory.
Each operation is done in the mount and in a plain directory beside the store; both must give the same result or errno,
and in the end the same names, contents, modes, links, attributes and open files, through the mount and behind it.
After each step the worker is killed by SIGKILL. --share does one sequence in N, drawn by the seed, which is printed.
SEQUENCE is one that was printed, as in "write x/a; exchange x/a y/b": it is done alone.
"""
import argparse
import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from mount import Failure, Mount
from sides import Side, operations, told


def kill(mount):
    """Ends the worker; the next one is there when the next operation is answered."""
    end = time.monotonic() + 20
    while (worker := mount.worker()) is None:
        if time.monotonic() > end or mount.process.poll() is not None:
            raise Failure("there is no worker any more")
        time.sleep(0.0002)
    os.kill(worker, signal.SIGKILL)
    while mount.worker() == worker:
        if time.monotonic() > end:
            raise Failure("the worker is still there")
        time.sleep(0.0002)


def attempt(mount, plain, number, steps, kills):
    """What differs; None if nothing does."""
    sides = [Side(f"{mount.place}/{number}"), Side(f"{plain}/{number}")]
    for side in sides:
        os.mkdir(side.place)
        side.prepare()
    try:
        for step in steps:
            results = [side.do(step) for side in sides]
            if kills:
                kill(mount)
            if results[0] != results[1]:
                return f"'{told([step])}' gives {results[0]} instead of {results[1]}"
        for what, states in (
            ("open files", [side.held_state() for side in sides]),
            ("in the mount", [side.state() for side in sides]),
            ("behind the mount", [sides[0].state(f"{mount.store}/tree/{mount.inside}/{number}"), sides[1].state()]),
        ):
            if states[0] != states[1]:
                return f"{what}: {states[0]} instead of {states[1]}"
    finally:
        for side in sides:
            side.end()
    return None


def sequences(arguments):
    if arguments.sequences:
        return [tuple(tuple(step.split()) for step in text.split("; ")) for text in arguments.sequences]
    every = operations()
    lengths = [arguments.length] if arguments.length else [2, 3]
    print(f"seed {arguments.seed}", flush=True)
    draw = random.Random(arguments.seed)
    return [steps for length in lengths for steps in itertools.product(every, repeat=length)
            if arguments.share <= 1 or draw.random() * arguments.share < 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, choices=(2, 3))
    parser.add_argument("--share", type=float, default=1)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--no-kills", action="store_true")
    parser.add_argument("--scratch", default=None)
    parser.add_argument("-o", action="append", default=[], help="an option of the mount")
    parser.add_argument("sequences", nargs="*")
    arguments = parser.parse_args()
    scratch = tempfile.mkdtemp(prefix="insula-sequences-", dir=arguments.scratch)
    os.chmod(scratch, 0o755)
    plain = f"{scratch}/plain"
    os.mkdir(plain)
    os.umask(0o022)
    mount = Mount(scratch, arguments.o)
    done = failures = 0
    try:
        mount.start()
        for steps in sequences(arguments):
            done += 1
            different = attempt(mount, plain, done, steps, not arguments.no_kills)
            if different:
                failures += 1
                print(f"\"{told(steps)}\": {different}", flush=True)
                if failures == 20:
                    break
        counts = mount.status()
        left = {key: counts.get(key, counts.get("counts", {}).get(key)) for key in ("openFiles", "openDirectories", "locks")}
        end = time.monotonic() + 20
        while any(left.values()) and time.monotonic() < end:
            time.sleep(0.01)
            counts = mount.status()
            left = {key: counts.get(key, counts.get("counts", {}).get(key)) for key in left}
        if any(left.values()):
            failures += 1
            print(f"not given back: {left}")
    finally:
        mount.end()
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"{done} sequences, {failures} with differences")
    return 1 if failures or not done else 0


if __name__ == "__main__":
    sys.exit(main())
