#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Volumes beside the mounts of their own engines, and what others notice of one that hangs; see Benchmarks/README.md.

usage: INSULA=program BENCH=insula-bench volumes.py [rows [KIND...]] [hang]     (as root; both where none is named)

'rows' runs rows of the benchmark on a volume of each kind and on the same filesystem or server mounted by its own
program, the contenders in changing order, as the user who has them. 'hang' measures what opens, reads, creations and
stats in the tree take another user while a server is used, and while it stands still and ten processes wait for it, in
turns.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Tests/Volumes"))
from kinds import INSULA, PATH, LeftOut, Place, chosen, run, wait  # noqa: E402

BENCH = os.environ.get("BENCH", "insula-bench")
ROWS = ("stat,stat-missing,readdir,open-read,chmod,create,unlink,rename,mkdir,sequential-read,sequential-write,"
        "random-read,random-write")
GOAL = 0.97


# Rows

def rows(place, options):
    """The rows that miss the goal are no failure: some can't be as fast, see Benchmarks/README.md."""
    tree, room = f"{place.point}/Users/{place.name}/Documents/bench", f"{place.scratch}/room"
    for directory in (tree, room):
        os.mkdir(directory)
        os.chown(directory, place.uid, place.gid)
    # Where users get to it.
    program = shutil.copy(shutil.which(BENCH) or BENCH, place.scratch)
    print("| kind | row | own mount | volume | ratio | tree |\n|---|---|--:|--:|--:|--:|", flush=True)
    for kind in chosen(options.kinds):
        user = True in kind.users
        try:
            volume = kind.add(place, user, kind.prepare(place, user))
            run(*place.become(user), "mkdir", f"{volume}/bench")
            if not user:
                os.chown(f"{volume}/bench", place.uid, place.gid)
            words = [f"plain=$PLACE/bench", f"volume={volume}/bench", f"tree={tree}"]
            script = (("" if user else f"chown {place.uid}:{place.gid} $PLACE; ") + " ".join(place.become(not user))
                      + ' sh -ec \'cd "$PLACE" && mkdir bench; cd /; exec ' + program + " "
                      + " ".join(f'--contender "{word}"' for word in words)
                      + f" --rounds {options.rounds} --seconds {options.seconds} --only {options.only}"
                      + f" --scratch {room} --json {room}/result.json >&2\'")
            text = kind.mounted(place, user, "sh", "-c", script)
            found = json.loads(pathlib.Path(f"{room}/result.json").read_text())
            os.unlink(f"{room}/result.json")
            show(kind.name, found["rows"])
        except LeftOut as reason:
            print(f"{kind.name}: LEFT OUT, {reason}", flush=True)
        except (OSError, ValueError):
            print(f"{kind.name}: the benchmark has ended: {text[-1500:]}", flush=True)
        finally:
            kind.remove(place, user)


def show(kind, found):
    for row in found:
        rates = {name: [sample["rate"] for sample in series.get("samples", [])]
                 for name, series in row["series"].items()}
        if not rates.get("plain") or not rates.get("volume"):
            print(f"| {kind} | {row['name']} | not to be had here | | | |", flush=True)
            continue
        # Of one round, between whose samples the least has changed.
        ratio = statistics.median(theirs / own for own, theirs in zip(rates["plain"], rates["volume"]))
        own, theirs, tree = (statistics.median(rates.get(name) or [0]) for name in ("plain", "volume", "tree"))
        mark = "" if ratio >= GOAL else " !"
        print(f"| {kind} | {row['name']} | {own:,.0f} | {theirs:,.0f} | {ratio:.2f}{mark} | {tree:,.0f} |", flush=True)


# A server that hangs

WORKER = """
import os, random, sys, time
place, seconds = sys.argv[1], float(sys.argv[2])
clock = time.perf_counter_ns
times = {name: [] for name in ("open and read", "create and delete", "stat")}
end = time.monotonic() + seconds
while time.monotonic() < end:
    number = random.randrange(200)
    start = clock()
    with open(f"{place}/{number}", "rb", buffering=0) as file:
        file.read(4096)
    times["open and read"].append(clock() - start)
    start = clock()
    os.close(os.open(f"{place}/new", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    os.unlink(f"{place}/new")
    times["create and delete"].append(clock() - start)
    start = clock()
    os.stat(f"{place}/{random.randrange(200)}")
    times["stat"].append(clock() - start)
for name, found in times.items():
    print(name, *found, sep=",")
"""


# Whoever uses the server, ten times a second.
READER = """
import os, random, sys, time
file = os.open(sys.argv[1], os.O_RDONLY)
while True:
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.pread(file, 4096, random.randrange(200) * 4096)
    time.sleep(0.1)
"""


def waits(pid):
    """Whether a process waits for what it has asked of a filesystem."""
    wait_in = pathlib.Path(f"/proc/{pid}/wchan").read_text()
    return "folio" in wait_in or "answer" in wait_in or "fuse" in wait_in


def load(place, directory, seconds):
    """What each operation of another user took, in nanoseconds."""
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c",
                           WORKER, directory, str(seconds)], stdout=subprocess.PIPE, check=True, env=PATH)
    lines = [line.split(",") for line in done.stdout.decode().splitlines()]
    return {line[0]: [int(word) for word in line[1:]] for line in lines}


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def hang(place, options):
    kind = next(chosen(["sshfs"]), None)
    if kind is None:
        return True
    volume = kind.add(place, True, kind.prepare(place, True))
    directory = f"{place.point}/Users/Shared/load"
    os.mkdir(directory)
    os.chmod(directory, 0o777)
    for number in range(200):
        pathlib.Path(f"{directory}/{number}").write_bytes(b"x" * 4096)
    run(*place.become(True), "sh", "-c", 'head -c 1000000 /dev/zero >"$0/file"', volume)
    servers = [int(pid) for name in ("sshfs", "sshd") for pid in
               run("pgrep", "-u", place.name, "-x", name, check=False).split()]
    users = [place.start(*place.become(True), "/usr/bin/python3", "-c", READER, f"{volume}/file") for _ in range(10)]
    alive, stopped, pairs = {}, {}, {}
    count = max(1, round(options.total / options.window))
    load(place, directory, 2)
    for number in range(count):
        windows = {}
        for state in random.sample(["alive", "stopped"], 2):
            for pid in servers if state == "stopped" else ():
                os.kill(pid, signal.SIGSTOP)
            # Until all ten wait.
            time.sleep(1)
            windows[state] = load(place, directory, options.window)
            if state == "stopped":
                waiting = sum(waits(process.pid) for process in users)
                for pid in servers:
                    os.kill(pid, signal.SIGCONT)
                if waiting < 10:
                    sys.exit(f"only {waiting} of ten processes have waited for the server")
                time.sleep(1)
        for name in windows["alive"]:
            alive.setdefault(name, []).extend(windows["alive"][name])
            stopped.setdefault(name, []).extend(windows["stopped"][name])
            pairs.setdefault(name, []).append(
                percentile(windows["stopped"][name], .99) / percentile(windows["alive"][name], .99))
    for process in users:
        os.killpg(process.pid, signal.SIGKILL)
    is_good = True
    print(f"{'operation':18} {'median, used':>13} {'hanging':>9} {'99th, used':>11} {'hanging':>9}  ratio of the 99th "
          f"(median of {count} pairs; of all)")
    for name in alive:
        ratio, whole = statistics.median(pairs[name]), percentile(stopped[name], .99) / percentile(alive[name], .99)
        is_good = is_good and min(ratio, whole) <= 1.1
        print(f"{name:18} {percentile(alive[name], .5) / 1000:10.1f} us {percentile(stopped[name], .5) / 1000:6.1f} us "
              f"{percentile(alive[name], .99) / 1000:8.1f} us {percentile(stopped[name], .99) / 1000:6.1f} us  "
              f"{ratio:.2f}; {whole:.2f}   ({len(alive[name])} and {len(stopped[name])} times)", flush=True)
    return is_good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help="rows, hang, and kinds of volumes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="length of a sample")
    parser.add_argument("--only", default=ROWS, help="rows of the benchmark")
    parser.add_argument("--total", type=float, default=60, help="seconds with and without a hanging server")
    parser.add_argument("--window", type=float, default=10, help="seconds at a time")
    options = parser.parse_args()
    options.kinds = [word for word in options.what if word not in ("rows", "hang")]
    place = Place()
    is_good = True
    try:
        if "rows" in options.what or options.kinds or not options.what:
            rows(place, options)
        if "hang" in options.what or not options.what:
            is_good = hang(place, options)
    finally:
        place.end()
    sys.exit(0 if is_good else 1)


main()
