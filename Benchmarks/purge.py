#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""What a purge does to others: purge.py [latency] [starts] [storage] [--files N] [--rounds N] [--starts N]

latency   another app opens, reads and closes files of its own all the time, before, while and after the caches of
          an app go, a million files: the times and by how much they grow. In each round on an image of ext4 in
          memory, so that no disk is measured.
starts    ten thousand starts of an app while its user purges again and again: none fails, and none misses a file
          that it has made.
storage   'insula storage' of a million files: with nothing of them in memory, beside du, while a daemon runs, and
          by one that was started with nothing in memory.
          In --scratch, which is on the disk to be measured.

All three by default. As root. INSULA names the program, or it is .build/release/insula.
"""
import argparse
import json
import os
import pathlib
import plistlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
USER, UID, GID = "nobody", 65534, 65534
APPS = {"Measured": "org.example.measured", "Filled": "org.example.filled"}


def fail(text):
    sys.exit(f"purge.py: {text}")


class Mount:
    """A store with two apps, on an image in memory of so many MiB or in a directory of the disk."""

    def __init__(self, program, helper, megabytes=None, disk=None):
        self.scratch = tempfile.mkdtemp(prefix="insula-purge-", dir=disk or "/dev/shm")
        os.chmod(self.scratch, 0o755)
        self.program, self.helper = f"{self.scratch}/insula", f"{self.scratch}/helper"
        # Where the user can run it; without symbols, as packages have it.
        subprocess.run(["strip", "-o", self.program, program], check=True)
        subprocess.run(["cp", helper, self.helper], check=True)
        self.point, self.area = f"{self.scratch}/mnt", f"{self.scratch}/area"
        self.environment = dict(os.environ, HOME=self.scratch, XDG_CONFIG_HOME=f"{self.scratch}/config")
        os.mkdir(self.point)
        os.mkdir(self.area)
        self.has_image = megabytes is not None
        if self.has_image:
            subprocess.run(["truncate", "-s", f"{megabytes}M", f"{self.scratch}/image"], check=True)
            subprocess.run(["mkfs.ext4", "-q", "-i", "4096", f"{self.scratch}/image"], check=True)
            subprocess.run(["mount", "-o", "loop", f"{self.scratch}/image", self.area], check=True)
        self.store = f"{self.area}/store"
        self.caches = f"{self.store}/tree/Users/{USER}/Library/Containers/{APPS['Filled']}/Data/Library/Caches"
        self.insula("init", self.store)
        self.insula("identity", "new", "measured", "--team", "ABCDE12345")
        self.insula("identity", "export", "measured", "--certificate", f"{self.scratch}/root.pem")
        self.insula("trust", "add", f"{self.scratch}/root.pem", "--store", self.store)
        self.insula("user", "add", USER, "--store", self.store)
        self.mount()
        for name, identifier in APPS.items():
            self.install(name, identifier)
            # Makes its container.
            self.run(identifier, "true")

    def insula(self, *words):
        done = subprocess.run([self.program, *words], cwd=self.scratch, env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            fail(f"insula {' '.join(words)}: {done.stdout}")
        return done.stdout

    def mount(self):
        self.insula("mount", self.store, self.point)

    def unmount(self):
        self.insula("unmount", self.point)

    def install(self, name, identifier):
        bundle = f"{self.scratch}/{name}.app"
        self.insula("new-app", name, self.scratch)
        information = f"{bundle}/Contents/Info.plist"
        with open(information, "rb") as file:
            keys = plistlib.load(file)
        keys["CFBundleIdentifier"] = identifier
        with open(information, "wb") as file:
            plistlib.dump(keys, file)
        subprocess.run(["cp", self.helper, f"{bundle}/Contents/MacOS/{keys['CFBundleExecutable']}"], check=True)
        self.insula("sign", bundle, "--identity", "measured")
        self.insula("install", bundle, "--store", self.point)

    def words(self, *words):
        """The words of a command that the user runs."""
        return ["setpriv", f"--reuid={UID}", f"--regid={GID}", "--clear-groups", *words]

    def run(self, identifier, *words):
        words = self.words(self.program, "run", "--store", self.point, identifier, "--", *words)
        return subprocess.run(words, cwd="/", env=self.environment, check=True, stdout=subprocess.PIPE, text=True).stdout

    def opens(self, seconds):
        """How often opening a file took how long, by buckets."""
        name = f"{self.point}/Applications/Measured.app/Contents/MacOS/Measured"
        text = self.run(APPS["Measured"], name, "open", "500", str(seconds))
        return {int(bucket): int(count) for bucket, count in (line.split() for line in text.splitlines())}

    def fill(self, files):
        subprocess.run([self.helper, "fill", self.caches, str(files), str(UID), str(GID)], check=True)

    def end(self):
        subprocess.run([self.program, "unmount", self.point], env=self.environment, stderr=subprocess.DEVNULL)
        if self.has_image:
            subprocess.run(["umount", self.area])
        subprocess.run(["rm", "-rf", self.scratch])


def add(sum, counts):
    for bucket, count in counts.items():
        sum[bucket] = sum.get(bucket, 0) + count


def percentile(counts, share):
    """In microseconds."""
    left = sum(counts.values()) * share
    for bucket in sorted(counts):
        # As if those of a bucket were spread evenly over it.
        if left <= counts[bucket]:
            return 2 ** ((bucket + left / counts[bucket]) / 256) / 1000
        left -= counts[bucket]
    return float("nan")


def latency(program, helper, given):
    print(f"Another app's opens while {given.files:,} files go, in microseconds:")
    print("round   p50: before  during  after    p99: before  during  after    during/quiet  after/before  purge")
    ratios, medians, noise = [], [], []
    for number in range(given.rounds):
        mount = Mount(program, helper, megabytes=1024 + given.files * 6 // 1000)
        try:
            mount.fill(given.files)
            subprocess.run(["sync", "-f", mount.area], check=True)
            mount.opens(0.5)
            before = mount.opens(given.seconds)
            began = time.monotonic()
            purge = subprocess.Popen([mount.program, "purge", APPS["Filled"], "--store", mount.point], env=mount.environment,
                                     stdout=subprocess.PIPE, text=True)
            during = {}
            while purge.poll() is None:
                window = mount.opens(0.5)
                # Not one in which it has ended.
                if purge.poll() is None:
                    add(during, window)
                    took = time.monotonic() - began
            if purge.returncode or os.listdir(mount.caches) != ["CACHEDIR.TAG"]:
                fail(f"the purge failed: {purge.stdout.read()}")
            after = mount.opens(given.seconds)
        finally:
            mount.end()
        phases = (before, during, after)
        p50, p99 = ([percentile(phase, share) for phase in phases] for share in (0.5, 0.99))
        quiet = dict(before)
        add(quiet, after)
        ratios.append(p99[1] / percentile(quiet, 0.99))
        medians.append(p50[1] / percentile(quiet, 0.5))
        noise.append(p99[2] / p99[0])
        print(f"{number + 1:5}        {p50[0]:7.1f} {p50[1]:7.1f} {p50[2]:7.1f}      {p99[0]:7.1f} {p99[1]:7.1f} {p99[2]:7.1f}"
              f"    {ratios[-1]:12.3f}  {noise[-1]:12.3f}  {took:4.0f} s", flush=True)
    print(f"p99 during a purge: {statistics.median(ratios):.3f} of that without; p50: {statistics.median(medians):.3f}; "
          f"without a purge, p99 afterwards: {statistics.median(noise):.3f} of that before")


def starts(program, helper, given):
    mount = Mount(program, helper, megabytes=512)
    stop = threading.Event()
    purges = [0, 0]

    def purge():
        while not stop.is_set():
            done = subprocess.run(mount.words(mount.program, "purge", "--json", "--store", mount.point), cwd="/",
                                  env=mount.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            purges[0] += 1
            purges[1] += any(item["freed"]["count"] for item in json.loads(done.stdout)["items"])

    thread = threading.Thread(target=purge)
    try:
        thread.start()
        name = f"{mount.point}/Applications/Measured.app/Contents/MacOS/Measured"
        words = mount.words(mount.program, "run", "--store", mount.point, APPS["Measured"], "--", name, "start")
        failures, began = {}, time.monotonic()
        for number in range(given.starts):
            if number % 1000 == 0:
                print(f"{number:,} starts, {purges[0]:,} purges", flush=True)
            done = subprocess.run(words, cwd="/", env=mount.environment, stderr=subprocess.PIPE, text=True)
            if done.returncode:
                failures[done.returncode] = failures.get(done.returncode, 0) + 1
                print(f"start {number} failed with {done.returncode}: {done.stderr.strip()}", flush=True)
        took = time.monotonic() - began
        stop.set()
        thread.join()
        mount.unmount()
        mount.insula("check", mount.store)
    finally:
        stop.set()
        mount.end()
    print(f"{given.starts:,} starts in {took:.0f} s, raced against {purges[0]:,} purges, of which {purges[1]:,} deleted "
          f"something: {sum(failures.values())} failed")
    return not failures


def seconds(words, cold, **options):
    if cold:
        subprocess.run(["sync"])
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")
    began = time.monotonic()
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True, **options)
    return time.monotonic() - began


def storage(program, helper, given):
    mount = Mount(program, helper, disk=given.scratch)
    try:
        mount.unmount()
        mount.fill(given.files)
        ours = [mount.program, "storage", "--store", mount.store]
        others = ["du", "-sx", mount.caches]
        print(f"A look at {given.files:,} files, in seconds:")
        for title, cold in [("nothing in memory", True), ("all in memory", False)]:
            times = [(seconds(ours, cold, env=mount.environment), seconds(others, cold)) for _ in range(given.rounds)]
            one, other = (statistics.median(column) for column in zip(*times))
            print(f"{title:20} insula storage {one:.2f}   du {other:.2f}", flush=True)
        mount.mount()
        ours[-1] = mount.point
        first = seconds(ours, False, env=mount.environment)
        times = [seconds(ours, False, env=mount.environment) for _ in range(50)]
        print(f"while a daemon runs  the first time {first:.2f}, then {statistics.median(times) * 1000:.1f} ms, "
              f"{max(times) * 1000:.1f} ms at most", flush=True)
        times = []
        for _ in range(given.rounds):
            mount.unmount()
            subprocess.run(["sync"])
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")
            mount.mount()
            times.append(seconds(ours, False, env=mount.environment))
        print(f"nothing in memory, and a daemon that was started just now: {statistics.median(times):.3f} "
              f"({max(times):.3f} at most)", flush=True)
    finally:
        mount.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="latency|starts|storage")
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--starts", type=int, default=10_000)
    parser.add_argument("--scratch", default=str(ROOT / ".build"))
    given = parser.parse_args()
    all = {"starts": starts, "latency": latency, "storage": storage}
    for word in given.what:
        if word not in all:
            parser.error(f"'{word}' is none of {', '.join(all)}")
    program = os.environ.get("INSULA") or str(ROOT / ".build/release/insula")
    if os.getuid() or not os.access(program, os.X_OK):
        fail(f"it takes root, and {program}, which 'make build' builds")
    with tempfile.TemporaryDirectory() as scratch:
        helper = f"{scratch}/purge"
        subprocess.run(["cc", "-O2", "-Wall", "-static", "-o", helper, ROOT / "Benchmarks/Purge/purge.c", "-lm"], check=True)
        results = [run(program, helper, given) for word, run in all.items() if not given.what or word in given.what]
    sys.exit(1 if False in results else 0)


main()
