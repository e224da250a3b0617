#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""What an app that is refused something all the time costs others.

    sudo Benchmarks/denials.py PROGRAM [SECONDS]

Mounts a store of its own in a temporary directory, and measures how long another program's mkdir, rmdir and stat take:
alone, beside an app that is refused the same thing or always something else a thousand times a second, and beside one
that is refused as often as it can. Prints microseconds, and what the log has grown to.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

FLOOD = r"""
import os, sys, time
place, rate, differ, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "different", float(sys.argv[4])
start = time.monotonic(); count = 0
while time.monotonic() - start < seconds:
    for _ in range(10):
        count += 1
        try: os.mkdir(place + "/" + ("x" * 100 + str(count) if differ else "same"))
        except OSError: pass
    if rate:
        ahead = count / rate - (time.monotonic() - start)
        if ahead > 0: time.sleep(ahead)
print(count)
"""


def main():
    program = os.path.abspath(sys.argv[1])
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 5
    directory = tempfile.mkdtemp(prefix="insula-denials-")
    os.chmod(directory, 0o755)
    environment = os.environ | {"HOME": directory, "XDG_DATA_HOME": "", "XDG_CONFIG_HOME": "", "INSULA_JOURNAL": ""}
    store, point = directory + "/store", directory + "/point"
    os.mkdir(point)

    def insula(*words):
        done = subprocess.run([program, *words], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"insula {' '.join(words)}: {done.stderr}")
        return done.stdout

    def flood(rate, kind):
        return subprocess.Popen(
            [program, "run", "--store", point, "org.example.flood", "--", "python3", "Documents/flood.py", point + "/System", str(rate), kind,
             str(seconds + 2)], env=environment, stdout=subprocess.PIPE, text=True)

    insula("init", store)
    insula("mount", store, point)
    try:
        insula("identity", "new", "tester", "--team", "ABCDE12345")
        insula("identity", "export", "tester", "--certificate", directory + "/root.pem")
        insula("trust", "add", directory + "/root.pem", "--store", store)
        insula("user", "add", "root", "--store", store)
        insula("new-app", "Flood", directory)
        insula("sign", directory + "/Flood.app", "--identity", "tester")
        insula("install", directory + "/Flood.app", "--store", store)
        documents = insula("path", "org.example.flood", "documents", "--store", store).strip()
        with open(documents + "/flood.py", "w") as file:
            file.write(FLOOD)
        print(f"{'':28}{'median':>8}{'90 %':>8}{'99 %':>8}{'99.9 %':>8}   denials/s")
        report("alone", measure(point, seconds), "")
        for rate, kind in [(1000, "same"), (1000, "different"), (0, "same"), (0, "different")]:
            app = flood(rate, kind)
            time.sleep(1)
            times = measure(point, seconds)
            count = int(app.communicate()[0])
            report(f"{rate or 'most'} a second, {kind}", times, f"{count / (seconds + 2):.0f}")
        log = store + "/state/log"
        sizes = {name: os.path.getsize(f"{log}/{name}") for name in sorted(os.listdir(log))} if os.path.isdir(log) else {}
        print("log:", ", ".join(f"{name} {size} bytes" for name, size in sizes.items()) or "none")
    finally:
        subprocess.run([program, "unmount", "--lazy", point], env=environment, capture_output=True)
        subprocess.run(["umount", "-l", point], capture_output=True)
        shutil.rmtree(directory, ignore_errors=True)


def measure(point, seconds):
    place = point + "/Users/Shared/victim"
    times = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for call in (os.mkdir, os.listdir, os.rmdir):
            start = time.perf_counter_ns()
            call(place)
            times.append(time.perf_counter_ns() - start)
        time.sleep(0.001)
    return sorted(times)


def report(what, times, rate):
    values = [times[min(len(times) - 1, int(len(times) * share))] / 1000 for share in (0.5, 0.9, 0.99, 0.999)]
    print(f"{what:28}" + "".join(f"{value:8.0f}" for value in values) + f"   {rate}", flush=True)


if __name__ == "__main__":
    main()
