#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""What grows how with files, users, apps that run, grants and volumes: the figures of Documentation/SCALING.md.

Each row gives what one more of a kind costs, and what an operation takes with few and with many of them, in one
run, the contenders by turns. Needs root, and a quiet machine for the times.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

INSULA = os.environ.get("INSULA", "insula")


def run(*words, check=True, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900, **options)
    if check and done.returncode:
        sys.exit(f"{' '.join(words)[:200]}: {done.stdout.decode(errors='replace')[-2000:]}")
    return done.stdout.decode(errors="replace")


class Store:
    """A store of root's, mounted, and the process that serves it."""

    def __init__(self, scratch):
        self.path, self.point = f"{scratch}/store", f"{scratch}/mnt"
        os.mkdir(self.point)
        run(INSULA, "init", self.path)
        self.mount()

    def mount(self):
        start = time.monotonic()
        run(INSULA, "mount", self.path, self.point)
        return time.monotonic() - start

    def unmount(self):
        run(INSULA, "unmount", self.point)

    def status(self):
        return json.loads(run(INSULA, "status", self.path, "--json"))

    def worker(self):
        def find(value):
            if isinstance(value, dict):
                if isinstance(value.get("pid"), int):
                    return value["pid"]
                value = list(value.values())
            for item in value if isinstance(value, list) else []:
                found = find(item)
                if found:
                    return found
            return None
        return find(self.status())

    def memory(self):
        """What the worker has to itself, in bytes."""
        with open(f"/proc/{self.worker()}/smaps_rollup") as file:
            lines = dict(line.split(":", 1) for line in file.read().splitlines()[1:])
        return sum(int(lines[key].split()[0]) << 10 for key in ("Private_Dirty", "Shared_Dirty") if key in lines)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.worker()}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.worker()}/task"))


def seconds(body, least=0.3):
    """The time of one call: the median of samples that last long enough."""
    samples = []
    for _ in range(5):
        count, start = 0, time.monotonic()
        while time.monotonic() - start < least:
            body()
            count += 1
        samples.append((time.monotonic() - start) / count)
    return statistics.median(samples)


ROWS = []


def row(what, figure):
    ROWS.append((what, figure))
    print(f"{what:58}  {figure}", flush=True)


def micro(value):
    return f"{value * 1e6:.0f} us"


def files(store, many):
    """Files that the kernel knows, and files of one directory."""
    point = f"{store.point}/Users/Shared"
    look = lambda: os.stat(f"{point}/one")
    open(f"{point}/one", "w").close()
    before, alone = store.memory(), seconds(look)
    made = 0
    for directory in range(many // 1000):
        os.mkdir(f"{point}/d{directory}")
        for number in range(1000):
            open(f"{point}/d{directory}/{number}", "w").close()
            made += 1
    run("find", point, "-size", "+1")
    row(f"memory of the daemon for each of {made} files that are known", f"{(store.memory() - before) / made:.0f} bytes")
    row(f"stat of another file with {made} known, against few", f"{seconds(look) / alone:.2f}")
    names = sorted(os.listdir(f"{point}/d0"))
    few = seconds(lambda: os.stat(f"{point}/d0/{names[0]}"))
    for number in range(1000, 20_000):
        open(f"{point}/d0/{number}", "w").close()
    row("stat in a directory of 20000 names, against one of 1000", f"{seconds(lambda: os.stat(f'{point}/d0/19999')) / few:.2f}")


def users(store, many):
    """Homes of accounts, which are there for this alone."""
    names = [f"insula-scale-{os.getpid()}-{number}" for number in range(many)]
    times = []
    try:
        for name in names:
            run("useradd", "--no-create-home", "--home-dir", "/nonexistent", name)
            start = time.monotonic()
            run(INSULA, "user", "add", name, "--store", store.path)
            times.append(time.monotonic() - start)
        tenth = max(1, many // 10)
        row(f"insula user add, the last of {many} against the first",
            f"{statistics.median(times[-tenth:]) / statistics.median(times[:tenth]):.2f}")
        store.unmount()
        row(f"mounting with {many} users", f"{store.mount() * 1000:.0f} ms")
        size = int(run("du", "-s", "--block-size=1", f"{store.path}/tree/Users/{names[0]}").split()[0])
        row("an empty home on the disk", f"{size >> 10} KiB")
    finally:
        for name in names:
            run("userdel", name, check=False)


def apps(store, many, scratch):
    """Apps that run: each has a view of its own."""
    run(INSULA, "identity", "new", "scale", "--team", "ABCDE12345")
    run(INSULA, "identity", "export", "scale", "--certificate", f"{scratch}/root.pem")
    run(INSULA, "trust", "add", f"{scratch}/root.pem", "--store", store.path)
    run(INSULA, "new-app", "Scale", scratch)
    run(INSULA, "sign", f"{scratch}/Scale.app", "--identity", "scale")
    name = f"insula-scale-{os.getpid()}"
    run("useradd", "--no-create-home", "--home-dir", "/nonexistent", name)
    running = []
    try:
        run(INSULA, "user", "add", name, "--store", store.path)
        run(INSULA, "install", f"{scratch}/Scale.app", "--store", store.path)
        identifier = json.loads(run(INSULA, "apps", "--store", store.path, "--json"))[0]["identifier"]

        def start():
            begin = time.monotonic()
            app = subprocess.Popen(
                ["setpriv", f"--reuid={name}", f"--regid={name}", "--clear-groups", INSULA, "run", "--store", store.point,
                 identifier, "--", "sh", "-c", "echo; exec sleep 600"], stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL)
            app.stdout.readline()
            running.append(app)
            return time.monotonic() - begin

        few = [start() for _ in range(5)]
        before, descriptors, threads = store.memory(), store.descriptors(), store.threads()
        look = lambda: os.stat(f"{store.point}/Users/Shared")
        alone = seconds(look)
        times = [start() for _ in range(many)]
        row(f"memory of the daemon for each of {many} apps that run", f"{(store.memory() - before) / many / 1024:.0f} KiB")
        row("descriptors of the daemon for each", f"{(store.descriptors() - descriptors) / many:.1f}")
        row("threads of the daemon for each", f"{(store.threads() - threads) / many:.1f}")
        row(f"insula run, with {many} running against few", f"{statistics.median(times[-5:]) / statistics.median(few):.2f}")
        row(f"stat by somebody else with {many} apps running, against few", f"{seconds(look) / alone:.2f}")
    finally:
        for app in running:
            app.terminate()
        for app in running:
            app.wait()
        run("userdel", name, check=False)


def volumes(store, many, scratch):
    """Directories as volumes."""
    look = lambda: os.stat(f"{store.point}/Users/Shared")
    alone, before = seconds(look), store.memory()
    for number in range(many):
        os.makedirs(f"{scratch}/volumes/v{number}/d")
        run(INSULA, "volume", "add", f"{scratch}/volumes/v{number}", "--store", store.path)
    row(f"memory of the daemon for each of {many} volumes", f"{(store.memory() - before) / many / 1024:.1f} KiB")
    row(f"stat in the tree with {many} volumes, against none", f"{seconds(look) / alone:.2f}")
    first = seconds(lambda: os.listdir(f"{store.point}/Volumes/v0/d"))
    last = seconds(lambda: os.listdir(f"{store.point}/Volumes/v{many - 1}/d"))
    row("listing on the last of them, against the first", f"{last / first:.2f}")
    store.unmount()
    row(f"mounting with {many} volumes", f"{store.mount() * 1000:.0f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="little of everything, in half a minute")
    parser.add_argument("--only", help="files, users, apps or volumes")
    options = parser.parse_args()
    scale = 10 if options.quick else 1
    scratch = tempfile.mkdtemp(prefix="insula-scaling-", dir="/var/tmp")
    os.chmod(scratch, 0o711)
    store = None
    os.environ["HOME"] = scratch
    try:
        store = Store(scratch)
        for name, part in (("files", lambda: files(store, 100_000 // scale)), ("users", lambda: users(store, 200 // scale)),
                           ("apps", lambda: apps(store, 100 // scale, scratch)),
                           ("volumes", lambda: volumes(store, 200 // scale, scratch))):
            if options.only in (None, name):
                part()
    finally:
        if store:
            run(INSULA, "unmount", "--lazy", store.point, check=False)
        time.sleep(0.5)
        shutil.rmtree(scratch, ignore_errors=True)


main()
