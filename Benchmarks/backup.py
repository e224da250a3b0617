#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""How fast restic is in the view for backups, beside the plain directory: backup.py [--files N] [--rounds N]

usage: INSULA=path/to/insula backup.py [--files N] [--rounds N] [--median BYTES] [--mean BYTES]

A home is filled with files whose sizes are distributed as on people's disks (lognormal, with a median of 4 KB and a
mean of 189 KB as in Agrawal and others, A Five-Year Study of File-System Metadata, 2007; none above 256 MB), in
directories of 40. restic backs it up into a new repository, from the directory behind the store and through 'insula
backup run' by turns, with all of it in memory. As root.
"""
import argparse
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

INSULA = os.environ.get("INSULA", "insula")
LARGEST = 256 << 20


def run(words, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1800, **options)
    if done.returncode:
        sys.exit(f"backup.py: {' '.join(words)}: {done.stdout}")
    return done.stdout


def fill(directory, given):
    """Makes the files; gives how many bytes they have."""
    chance = random.Random(2026)
    mu, sigma = math.log(given.median), math.sqrt(2 * math.log(given.mean / given.median))
    total = 0
    for number in range(given.files):
        place = f"{directory}/{number // 1600}/{number // 40 % 40}"
        os.makedirs(place, exist_ok=True)
        size = min(int(chance.lognormvariate(mu, sigma)), LARGEST)
        with open(f"{place}/file {number}", "wb") as file:
            file.write(os.urandom(size))
        total += size
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--median", type=int, default=4 << 10)
    parser.add_argument("--mean", type=int, default=189 << 10)
    given = parser.parse_args()
    if os.geteuid():
        sys.exit("backup.py: must be run as root")
    scratch = tempfile.mkdtemp(prefix="insula-backup-", dir="/var/tmp")
    store, point = f"{scratch}/store", f"{scratch}/point"
    environment = dict(os.environ, RESTIC_PASSWORD="measured", RESTIC_CACHE_DIR=f"{scratch}/cache")
    os.mkdir(point)
    run([INSULA, "init", store])
    run([INSULA, "mount", store, point])
    try:
        run([INSULA, "user", "add", "nobody", "--store", store])
        total = fill(f"{point}/Users/nobody/Documents", given)
        plain, mounted = (f"{top}/Users/nobody/Documents" for top in (f"{store}/tree", point))

        def seconds(words, place):
            repository = f"{scratch}/repository"
            shutil.rmtree(repository, ignore_errors=True)
            run(["restic", "-q", "init", "-r", repository], env=environment)
            began = time.monotonic()
            run([*words, "restic", "-q", "backup", "-r", repository, place], env=environment)
            return time.monotonic() - began

        contenders = {"plain": ([], plain), "view": ([INSULA, "backup", "run", "--store", point, "--"], mounted)}
        # The first reads everything into memory.
        seconds(*contenders["plain"])
        times = {name: [] for name in contenders}
        for number in range(given.rounds):
            for name in sorted(contenders, reverse=number % 2 == 1):
                times[name].append(seconds(*contenders[name]))
        for name, found in times.items():
            print(f"{name:6} {statistics.median(found):7.2f} s ({min(found):.2f} to {max(found):.2f})")
        ratio = statistics.median(a / b for a, b in zip(times["plain"], times["view"]))
        print(f"{given.files:,} files, {total / 1e6:,.0f} MB: the view reaches {ratio:.2f} of the plain directory")
    finally:
        run([INSULA, "unmount", point])
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
