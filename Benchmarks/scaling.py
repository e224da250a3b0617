#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""What grows how with files, users, apps, grants, volumes and machines: the figures of Documentation/SCALING.md.

usage: INSULA=program scaling.py [--quick] [files] [users] [installed] [running] [grants] [volumes] [lease]   (as root)

Each row says what one more of a kind costs, or what an operation takes with many of them against few, in one run. Each
part has a store of its own. Memory is what the process that serves has to itself. Times need a quiet machine.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Tests/Volumes"))
from kinds import INSULA, PATH, Place, run, wait  # noqa: E402

SFTP = "/usr/lib/openssh/sftp-server"


class Measured(Place):
    """A store, and the process that serves it."""

    def status(self):
        return json.loads(run(INSULA, "status", self.store, "--json"))

    def worker(self):
        return self.status()["pid"]

    def memory(self):
        with open(f"/proc/{self.worker()}/smaps_rollup") as file:
            lines = dict(line.split(":", 1) for line in file.read().splitlines()[1:])
        return sum(int(lines[key].split()[0]) << 10 for key in ("Private_Dirty", "Shared_Dirty") if key in lines)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.worker()}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.worker()}/task"))

    def insula(self, verb, *words, user=False):
        return run(*self.become(user), INSULA, verb, *words, "--store", self.store)

    def remount(self):
        """How long a mount takes."""
        run(INSULA, "unmount", self.point)
        return timed(lambda: run(INSULA, "mount", self.store, self.point))

    def sign_with(self, name):
        os.environ["HOME"] = PATH["HOME"] = self.scratch
        PATH.pop("XDG_CONFIG_HOME", None)
        run(INSULA, "identity", "new", name, "--team", "ABCDE12345")
        run(INSULA, "identity", "export", name, "--certificate", f"{self.scratch}/root.pem")
        self.insula("trust", "add", f"{self.scratch}/root.pem")
        with open(f"{self.scratch}/rights", "w") as file:
            file.write('<plist version="1.0"><dict><key>com.apple.security.files.user-selected.read-write</key>'
                       "<true/></dict></plist>")

    def install(self, name, identity):
        run(INSULA, "new-app", name, self.scratch)
        run(INSULA, "sign", f"{self.scratch}/{name}.app", "--identity", identity, "--entitlements",
            f"{self.scratch}/rights")
        self.insula("install", f"{self.scratch}/{name}.app")

    def identifier(self):
        return json.loads(self.insula("apps", "--json"))[0]["identifier"]

    def run_app(self, identifier):
        """An app that waits; and how long its start took."""
        start = time.monotonic()
        app = subprocess.Popen(
            [*self.become(True), INSULA, "run", "--store", self.point, identifier, "--", "sh", "-c",
             "echo started; exec sleep 100000"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=PATH, cwd="/")
        line = app.stdout.readline()
        if line != b"started\n":
            app.kill()
            sys.exit(f"the app does not run: {(line + app.stdout.read()).decode(errors='replace')}")
        return app, time.monotonic() - start


def timed(body):
    start = time.monotonic()
    body()
    return time.monotonic() - start


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


def row(what, figure):
    print(f"| {what} | {figure} |", flush=True)


def ratio(times, share=10):
    """The last of a list against the first."""
    count = max(1, len(times) // share)
    return f"{statistics.median(times[-count:]) / statistics.median(times[:count]):.2f}"


def files(place, many):
    """Files that the kernel knows, and files of one directory."""
    point = f"{place.point}/Users/Shared"
    open(f"{point}/one", "w").close()
    before, alone = place.memory(), seconds(lambda: os.stat(f"{point}/one"))
    for directory in range(many // 1000):
        os.mkdir(f"{point}/d{directory}")
        for number in range(1000):
            open(f"{point}/d{directory}/{number}", "w").close()
    run("find", point, "-size", "+1")
    row(f"memory for each of {many:,} files that are known", f"{(place.memory() - before) / many:.0f} bytes")
    row(f"stat of another file with {many:,} known, against few", f"{seconds(lambda: os.stat(f'{point}/one')) / alone:.2f}")
    large = max(many // 5, 2000)
    make = lambda directory, name: (open(f"{point}/{directory}/{name}", "x").close(), os.unlink(f"{point}/{directory}/{name}"))
    few = seconds(lambda: make("d0", "new"))
    os.mkdir(f"{point}/large")
    for number in range(large):
        open(f"{point}/large/{number}", "w").close()
    row(f"creating and deleting in a directory of {large:,} names, against one of 1,000",
        f"{seconds(lambda: make('large', 'new')) / few:.2f}")


def users(place, many):
    """Homes of accounts, which are there for this alone."""
    names = [f"insula-scale-{os.getpid()}-{number}" for number in range(many)]
    try:
        times = []
        for name in names:
            run("useradd", "--no-create-home", "--home-dir", "/nonexistent", name)
            times.append(timed(lambda: place.insula("user", "add", name)))
        row(f"insula user add, the last of {many} against the first", ratio(times))
        row(f"mounting with {many} users", f"{place.remount() * 1000:.0f} ms")
        size = int(run("du", "-s", "--block-size=1", f"{place.store}/tree/Users/{names[0]}").split()[0])
        row("an empty home on the disk", f"{size >> 10} KiB")
        row("memory for each user whose home is used", f"{used(place, names):.1f} KiB")
    finally:
        for name in names:
            run("userdel", name, check=False)


def used(place, names):
    """KiB of the daemon's for each home in which somebody looks around."""
    before = place.memory()
    for name in names:
        run("setpriv", f"--reuid={name}", f"--regid={name}", "--clear-groups", "ls", "-R",
            f"{place.point}/Users/{name}", check=False)
    return (place.memory() - before) / len(names) / 1024


def installed(place, many):
    place.sign_with("scale")
    times, before = [], None
    for number in range(many):
        times.append(timed(lambda: place.install(f"Scale{number}", "scale")))
        before = before or place.memory()
    row(f"insula install, the last of {many} apps against the first", ratio(times))
    row("memory for each app that is installed", f"{(place.memory() - before) / many / 1024:.1f} KiB")
    row(f"insula apps, with {many} of them", f"{seconds(lambda: place.insula('apps')) * 1000:.0f} ms")
    row(f"mounting with {many} apps", f"{place.remount() * 1000:.0f} ms")


def running(place, many):
    """Apps that run: each has a view of its own."""
    place.sign_with("scale")
    place.install("Scale", "scale")
    identifier, apps = place.identifier(), []
    look = lambda: os.stat(f"{place.point}/Users/Shared")
    try:
        def start():
            app, took = place.run_app(identifier)
            apps.append(app)
            return took
        few = [start() for _ in range(5)]
        before, descriptors, threads, alone = place.memory(), place.descriptors(), place.threads(), seconds(look)
        times = [start() for _ in range(many)]
        count = len(json.loads(place.insula("ps", "--json", user=True)))
        if count != many + 5:
            sys.exit(f"{count} apps run, and {many + 5} were started")
        row(f"memory for each of {many} apps that run", f"{(place.memory() - before) / many / 1024:.0f} KiB")
        row("descriptors for each", f"{(place.descriptors() - descriptors) / many:.1f}")
        row("threads for all of them", f"{place.threads() - threads}")
        row(f"insula run, with {many} running against few", f"{statistics.median(times[-5:]) / statistics.median(few):.2f}")
        row(f"stat by somebody else with {many} apps running, against few", f"{seconds(look) / alone:.2f}")
    finally:
        for app in apps:
            app.terminate()
        for app in apps:
            app.wait()


def grants(place, many):
    """Files that a user grants to one app, each in a directory of its own."""
    place.sign_with("scale")
    place.install("Scale", "scale")
    identifier, home = place.identifier(), f"{place.point}/Users/{place.name}/Documents"
    run(*place.become(True), "sh", "-c", 'cd "$0"; mkdir other; for i in $(seq "$1"); do mkdir $i; echo >$i/f; done',
        home, str(many))
    def moved():
        os.rename(f"{home}/other", f"{home}/again")
        os.rename(f"{home}/again", f"{home}/other")
    before, alone, times = place.memory(), seconds(moved), []
    app, few = place.run_app(identifier)
    app.terminate(), app.wait()
    for number in range(1, many + 1):
        times.append(timed(lambda: place.insula("grant", identifier, f"{home}/{number}/f", user=True)))
    row(f"insula grant, the last of {many} against the first", ratio(times))
    row("memory for each grant", f"{(place.memory() - before) / many / 1024:.1f} KiB")
    row(f"renaming another directory with {many} grants, against none", f"{seconds(moved) / alone:.2f}")
    app, took = place.run_app(identifier)
    app.terminate(), app.wait()
    row(f"insula run of the app with {many} grants, against none", f"{took / few:.2f}")
    row(f"mounting with {many} grants", f"{place.remount() * 1000:.0f} ms")


def volumes(place, many):
    """Directories as volumes."""
    look = lambda: os.stat(f"{place.point}/Users/Shared")
    alone, before = seconds(look), place.memory()
    for number in range(many):
        os.makedirs(f"{place.scratch}/volumes/v{number}/d")
        place.volume("add", f"{place.scratch}/volumes/v{number}")
    row(f"memory for each of {many} volumes", f"{(place.memory() - before) / many / 1024:.1f} KiB")
    row(f"stat in the tree with {many} volumes, against none", f"{seconds(look) / alone:.2f}")
    first = seconds(lambda: os.listdir(f"{place.point}/Volumes/v0/d"))
    row("listing on the last of them, against the first",
        f"{seconds(lambda: os.listdir(f'{place.point}/Volumes/v{many - 1}/d')) / first:.2f}")
    row(f"mounting with {many} volumes", f"{place.remount() * 1000:.0f} ms")


def lease(place, many):
    """What an idle store costs the server that it lies on: the requests that sftp-server gets."""
    log, served, client, point = (f"{place.scratch}/{name}" for name in ("sftp.log", "served", "client", "point"))
    for directory in (served, client, point):
        os.mkdir(directory)
    with open(log, "wb") as errors:
        server = subprocess.Popen([SFTP, "-e", "-l", "DEBUG3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
    sshfs = subprocess.Popen(
        ["sshfs", "-f", "-o", "passive,allow_other,default_permissions,dir_cache=no,attr_timeout=0,entry_timeout=0",
         f":{served}", client], stdin=server.stdout, stdout=server.stdin, stderr=subprocess.DEVNULL)
    server.stdin.close(), server.stdout.close()
    try:
        if not wait(lambda: os.path.ismount(client)):
            sys.exit("sshfs does not mount")
        run(INSULA, "init", f"{client}/store")
        run(INSULA, "mount", f"{client}/store", point)
        requests = lambda: sum(b": request " in line and b": sent" not in line for line in open(log, "rb"))
        time.sleep(10)
        before, length = requests(), max(many, 20)
        time.sleep(length)
        row("requests a minute that an idle store costs its server", f"{(requests() - before) * 60 / length:.0f}")
        run(INSULA, "unmount", point)
    finally:
        run("umount", "-l", point, check=False)
        run("umount", "-l", client, check=False)
        for process in (sshfs, server):
            process.terminate()
            process.wait()


PARTS = {"files": (files, 100_000), "users": (users, 100), "installed": (installed, 100), "running": (running, 150),
         "grants": (grants, 500), "volumes": (volumes, 250), "lease": (lease, 120)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        sys.exit(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    print("| what | figure |\n|---|--:|", flush=True)
    for name, (part, many) in PARTS.items():
        if options.parts and name not in options.parts:
            continue
        place = Measured()
        try:
            part(place, max(5, many // 10) if options.quick else many)
        finally:
            place.end()


main()
