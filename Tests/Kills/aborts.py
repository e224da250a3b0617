#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Ends requests in the middle: clients are killed, connections aborted, mounts detached. Nothing may hang.

usage: INSULA=path/to/insula aborts.py [--clients N] [--connections N]

So many clients are killed at a random moment of what they do, one after the other in one mount; what the daemon holds afterwards must
be what it held before. Then so many mounts, each under several clients, are aborted, detached or unmounted by turns; each client must
end, and so must the daemon. Run it as root (who may abort a connection).
"""
import argparse
import fcntl
import mmap
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from mount import Failure, Mount, children, status_number

PATIENCE = 20


def work(place, number, seed):
    """What a client does until it is ended: something of every kind that may be under way."""
    dice = random.Random(seed)
    os.chdir(place)
    name = f"f{number}"
    steps = [
        lambda: os.close(os.open(name, os.O_RDWR | os.O_CREAT, 0o600)),
        lambda: os.stat(f"missing-{dice.random()}"),
        lambda: os.chmod(name, dice.choice([0o600, 0o640])),
        lambda: os.setxattr(name, "user.a", os.urandom(100)),
        lambda: os.rename(name, name + "x") or os.rename(name + "x", name),
        lambda: [os.mkdir(name + "d"), os.rmdir(name + "d")],
        lambda: os.listdir("."),
        lambda: write_through(name),
        lambda: wait_for_lock(dice),
        lambda: map_shared(name),
    ]
    while True:
        try:
            dice.choice(steps)()
        except FileNotFoundError:
            pass
        except FileExistsError:
            os.rmdir(name + "d") if os.path.isdir(name + "d") else os.unlink(name)


def write_through(name):
    file = os.open(name, os.O_WRONLY | os.O_CREAT)
    os.write(file, b"x" * 8192)
    os.fsync(file)
    os.close(file)


def wait_for_lock(dice):
    file = os.open("lock", os.O_RDWR | os.O_CREAT)
    kind = dice.choice([fcntl.lockf, fcntl.flock])
    kind(file, fcntl.LOCK_EX)
    time.sleep(0.002)
    os.close(file)


def map_shared(name):
    file = os.open(name, os.O_RDWR | os.O_CREAT)
    os.ftruncate(file, 8192)
    with mmap.mmap(file, 8192) as pages:
        pages[4096] = 1
    os.close(file)


def start(place, number):
    pid = os.fork()
    if pid == 0:
        try:
            work(place, number, os.getpid())
        except BaseException:
            pass
        os._exit(0)
    return pid


def wait(pids, what):
    """Each of them ends in time."""
    end = time.monotonic() + PATIENCE
    left = set(pids)
    while left:
        for pid in list(left):
            if os.waitpid(pid, os.WNOHANG)[0]:
                left.discard(pid)
        if time.monotonic() > end:
            with open(f"/proc/{min(left)}/stack") as file:
                raise Failure(f"{what}: {len(left)} clients hang, one of them in\n{file.read()}")
        time.sleep(0.0005)


def held(mount):
    """What the daemon has open and has in work, when it has had time to let go."""
    status = mount.status()
    counts = {key: status[key] for key in ("openFiles", "openDirectories", "parkedRequests", "threads") if key in status}
    counts["descriptors"] = len(os.listdir(f"/proc/{mount.worker()}/fd"))
    return counts


def kill_clients(mount, total, dice):
    mount.start()
    try:
        for number in range(8):
            pid = start(mount.place, number)
            time.sleep(0.05)
            os.kill(pid, signal.SIGKILL)
            wait([pid], "a client that was killed")
        before = held(mount)
        done = 0
        while done < total:
            pids = [start(mount.place, number) for number in range(8)]
            for pid in pids:
                time.sleep(dice.random() * 0.004)
                os.kill(pid, signal.SIGKILL)
            wait(pids, "clients that were killed")
            done += len(pids)
        after = before_long(mount, before)
        print(f"{done} clients killed; held before {before}, after {after}", flush=True)
    finally:
        mount.end()


def before_long(mount, expected):
    """What is held, as soon as that is no more than expected; names that are known may take descriptors."""
    end = time.monotonic() + PATIENCE
    while True:
        after = held(mount)
        if all(after[key] <= expected[key] + (64 if key == "descriptors" else 0) for key in expected if key != "threads"):
            return after
        if time.monotonic() > end:
            raise Failure(f"the daemon holds {after} after its clients have ended, and held {expected} before")
        time.sleep(0.1)


def abort(device):
    control = "/sys/fs/fuse/connections"
    if not os.path.ismount(control):
        subprocess.run(["mount", "-t", "fusectl", "fusectl", control], check=True)
    with open(f"{control}/{os.minor(device)}/abort", "w") as file:
        file.write("1")


def end_connections(mount, total, dice):
    ways = {"aborted": 0, "detached": 0, "unmounted": 0}
    for number in range(total):
        way = list(ways)[number % len(ways)]
        mount.start_quickly()
        pids = [start(mount.place, client) for client in range(4)]
        time.sleep(dice.random() * 0.05)
        device = os.stat(mount.point).st_dev
        if way == "aborted":
            abort(device)
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        elif way == "detached":
            subprocess.run(["umount", "-l", mount.point], check=True)
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        else:
            subprocess.run([mount.program, "unmount", "--lazy", mount.point], check=True, timeout=PATIENCE,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        wait(pids, f"clients of a mount that was {way}")
        try:
            mount.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(f"the daemon goes on after its mount was {way}: {mount.log()}")
        if way == "aborted":
            # It stays, dead, until somebody takes it away.
            subprocess.run([mount.program, "unmount", mount.point], check=True, timeout=PATIENCE,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if os.path.ismount(mount.point):
            raise Failure(f"it is still mounted after its mount was {way}")
        ways[way] += 1
    print(", ".join(f"{count} connections {way}" for way, count in ways.items()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=8000)
    parser.add_argument("--connections", type=int, default=2000)
    arguments = parser.parse_args()
    seed = int(os.environ.get("SEED", time.time_ns() % 1_000_000))
    print(f"SEED={seed}", flush=True)
    dice = random.Random(seed)
    scratch = tempfile.mkdtemp(prefix="insula-aborts-")
    os.chmod(scratch, 0o755)
    mount = Mount(scratch, [])
    try:
        kill_clients(mount, arguments.clients, dice)
        end_connections(mount, arguments.connections, dice)
    except Failure as failure:
        print(f"FAILED: {failure}", flush=True)
        return 1
    finally:
        mount.end()
        subprocess.run(["umount", "-l", mount.point], stderr=subprocess.DEVNULL)
        shutil.rmtree(scratch, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
