#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Kills the process that serves, again and again, under what programs do. No program may notice.

usage: INSULA=path/to/insula kills.py [--kills N] [--by KILL|...|memory|processes] [--twice] [LOAD...]

Run it as root for a system store, and as another user for a store of one's own. Each load runs until so many
kills have happened, and at least once; whatever a program reports as an error is a failure. Besides the loads
there are two that are only run by name: "leaks" compares what is left after many kills with what is left after
one, and "nodes" measures the pause when the kernel knows a million objects.
"""
import argparse
import os
import shutil
import signal
import sys
import tempfile

# Nothing is to lie about among the sources.
sys.dont_write_bytecode = True

import leaks
import memory
import nodes
from killer import Killer, UpgradeKiller, described
from loads import ALL, Loads
from mount import Mount


def killer_for(arguments, mount):
    options = {"twice": arguments.twice}
    if arguments.to:
        return UpgradeKiller(mount, arguments.to, between=(0.2, 0.6))
    if arguments.by == "memory":
        memory.check_victim(mount)
        return memory.MemoryKiller(mount, between=(0.3, 1), **options)
    if arguments.by == "processes":
        return memory.ProcessKiller(mount, between=(0.3, 1), **options)
    # Where all takes longer, more has to fit between two kills.
    return Killer(mount, getattr(signal, "SIG" + arguments.by), between=(0.02, 0.4 / arguments.share), **options)


def repeat(arguments, name, mount, scratch):
    """Runs a load until there were enough kills."""
    loads = Loads(mount, scratch, arguments.files, arguments.share)
    loads.prepare(name)
    killer = killer_for(arguments, mount)
    rounds = 0
    try:
        killer.start()
        while killer.failure is None and (rounds == 0 or killer.kills < arguments.kills):
            getattr(loads, name)()
            rounds += 1
    finally:
        killer.stop()
        if hasattr(killer, "group"):
            killer.group.end()
    if killer.failure:
        raise killer.failure
    return f"{killer.kills} kills, {rounds} rounds, {described(killer.pauses)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--by", default="KILL", help="a signal, or what there is none of: memory, processes")
    parser.add_argument("--to", action="append", default=[], metavar="PROGRAM",
                        help="restart to this program instead, in turn if it is given several times")
    parser.add_argument("--twice", action="store_true", help="kill the replacement while it takes over, too")
    parser.add_argument("--files", type=int, default=10_000, help="how many files the load fsync makes")
    parser.add_argument("--nodes", type=int, default=1_000_000, help="how many objects the load nodes makes")
    parser.add_argument("--share", type=float, default=1, help="of the files that other loads make, and of the kills in a second, for slow places")
    parser.add_argument("--scratch", default=None)
    parser.add_argument("--store-in", default=None, metavar="DIRECTORY", help="where the store lies (default: there)")
    parser.add_argument("-o", action="append", default=[], help="an option of the mount")
    parser.add_argument("loads", nargs="*", default=[])
    arguments = parser.parse_args()
    failed = False
    for name in arguments.loads or ALL:
        scratch = tempfile.mkdtemp(prefix="insula-kills-", dir=arguments.scratch)
        os.chmod(scratch, 0o755)
        stores = tempfile.mkdtemp(prefix="insula-kills-", dir=arguments.store_in) if arguments.store_in else scratch
        mount = Mount(scratch, arguments.o, stores)
        is_ok = False
        try:
            if name == "nodes":
                nodes.make(mount, arguments.nodes)
            mount.start()
            if name == "nodes":
                text = nodes.check(mount, arguments.kills)
            elif name == "leaks":
                text = leaks.check(mount, scratch, arguments.kills, twice=arguments.twice)
            else:
                text = repeat(arguments, name, mount, scratch)
            print(f"{name}: ok; {text}", flush=True)
            is_ok = True
        except Exception as failure:
            failed = True
            print(f"{name}: FAILED; {type(failure).__name__}: {failure}\n{mount.log()}", flush=True)
        finally:
            mount.end()
            if is_ok:
                for place in {scratch, stores}:
                    shutil.rmtree(place, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
