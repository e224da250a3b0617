#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""What an app pays for being asked about: apps.py [--before PROGRAM] [-o OPTION]

In one run of an app, by turns: opening a file of its own, one in its user's media library, for which it has
consent, and one that its user has granted; and a call through the app's socket. Then the time that 'insula run'
takes with a program that does nothing; with --before, by turns with another version of the program, on its own
mount. As root with a store for all users, else with one of the user's own. INSULA names the program, or it is
.build/release/insula.
"""
import argparse
import os
import pathlib
import plistlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROUNDS, SECONDS = 21, 0.3
RUNS = 60
IS_ROOT = os.getuid() == 0
IDENTIFIER = "org.example.measured"


def fail(text):
    sys.exit(f"apps.py: {text}")


class Mount:
    """A store with an app, and the user who runs it."""

    def __init__(self, program, scratch, options):
        self.program, self.scratch, self.point = program, scratch, f"{scratch}/mnt"
        self.environment = dict(os.environ, HOME=scratch, XDG_CONFIG_HOME=f"{scratch}/config")
        self.user = "nobody" if IS_ROOT else subprocess.check_output(["id", "-un"], text=True).strip()
        os.makedirs(self.point)
        os.chmod(scratch, 0o755)
        store = f"{scratch}/store"
        self.insula("init", store)
        self.insula("identity", "new", "measured", "--team", "ABCDE12345")
        self.insula("identity", "export", "measured", "--certificate", f"{scratch}/root.pem")
        self.insula("trust", "add", f"{scratch}/root.pem", "--store", store)
        self.insula("user", "add", self.user, "--store", store)
        self.insula("mount", *[word for option in options for word in ("-o", option)], store, self.point)
        self.home = f"{self.point}/Users/{self.user}"

    def insula(self, *words):
        done = subprocess.run([self.program, *words], cwd=self.scratch, env=self.environment, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            fail(f"insula {' '.join(words)}: {done.stdout}")

    def install(self, executable):
        bundle = f"{self.scratch}/Measured.app"
        self.insula("new-app", "Measured", self.scratch)
        information = f"{bundle}/Contents/Info.plist"
        with open(information, "rb") as file:
            keys = plistlib.load(file)
        keys["CFBundleIdentifier"] = IDENTIFIER
        keys["NSAppleMusicUsageDescription"] = "Opening songs is measured."
        with open(information, "wb") as file:
            plistlib.dump(keys, file)
        place = f"{bundle}/Contents/MacOS/{keys['CFBundleExecutable']}"
        subprocess.run(["cp", executable, place], check=True)
        self.executable = f"{self.point}/Applications/{place.removeprefix(self.scratch + '/')}"
        self.insula("sign", bundle, "--identity", "measured")
        self.insula("install", bundle, "--store", self.point)

    def as_user(self, *words):
        """The words of a command that the user runs."""
        return (["setpriv", f"--reuid={self.user}", "--regid=nogroup", "--clear-groups"] if IS_ROOT else []) + list(words)

    def user_runs(self, *words, **options):
        return subprocess.run(self.as_user(*words), cwd="/", env=self.environment, timeout=600, check=True,
                              stdout=subprocess.PIPE, text=True, **options).stdout

    def run(self, *words):
        return self.user_runs(self.program, "run", "--store", self.point, IDENTIFIER, *words)

    def make(self, path):
        self.user_runs("sh", "-c", 'mkdir -p "$(dirname "$1")" && echo data >"$1"', "sh", path)
        return path

    def end(self):
        subprocess.run([self.program, "unmount", self.point], env=self.environment, timeout=60)


def quartiles(values, digits):
    low, median, high = statistics.quantiles(values, n=4)
    return f"{median:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def measure_inside(mount, executable):
    mount.install(executable)
    own = mount.run("--", "sh", "-c", 'echo data >Documents/own && echo "$PWD/Documents/own"').strip()
    song = mount.make(f"{mount.home}/Music/Music/song")
    granted = mount.make(f"{mount.home}/Granted/file")
    flag = ["--user", mount.user] if IS_ROOT else []
    mount.insula("consent", "allow", IDENTIFIER, "media-library", *flag, "--store", mount.point)
    mount.user_runs(mount.program, "grant", IDENTIFIER, granted, "--store", mount.point)
    text = mount.run("--", mount.executable, str(ROUNDS), str(SECONDS), own, song, granted)
    rounds = [[float(word) for word in line.split()] for line in text.splitlines()]
    print(f"open of an own file       {quartiles([1e6 / r[0] for r in rounds], 1)} us")
    print(f"open with consent         {quartiles([r[1] / r[0] for r in rounds], 3)} of that of an own file")
    print(f"open of a granted file    {quartiles([r[2] / r[0] for r in rounds], 3)} of that of an own file")
    print(f"call through the socket   {quartiles([1e6 / r[3] for r in rounds], 1)} us")


def measure_run(mounts):
    samples = [[] for _ in mounts]
    for number in range(RUNS + 2):
        for index, mount in list(enumerate(mounts))[:: 1 if number % 2 else -1]:
            words = mount.as_user(mount.program, "run", "--store", mount.point, IDENTIFIER, "--", "true")
            begin = time.perf_counter()
            subprocess.run(words, cwd="/", env=mount.environment, check=True)
            if number > 1:
                samples[index].append((time.perf_counter() - begin) * 1e3)
    for index, title in enumerate(["insula run", "insula run, before"][: len(mounts)]):
        print(f"{title:25} {quartiles(samples[index], 2)} ms")
    if len(mounts) > 1:
        print(f"difference                {quartiles([a - b for a, b in zip(*samples)], 2)} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", metavar="PROGRAM")
    parser.add_argument("-o", action="append", default=[], metavar="OPTION")
    given = parser.parse_args()
    program = os.environ.get("INSULA") or str(ROOT / ".build/release/insula")
    programs = [program] + ([given.before] if given.before else [])
    for one in programs:
        if not os.access(one, os.X_OK):
            fail(f"there is no {one}; 'make build' builds it, or name another one with INSULA=")
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)
        library = ROOT / "Sources/CInsula"
        executable = f"{scratch}/app"
        subprocess.run(["cc", "-O2", "-static", f"-I{library}/include", "-o", executable,
                        ROOT / "Benchmarks/Apps/app.c", *library.glob("*.c"), "-lpthread"], check=True)
        mounts = []
        try:
            for index, one in enumerate(programs):
                os.mkdir(f"{scratch}/{index}")
                # Without symbols, as packages have it; where the user can run it.
                subprocess.run(["strip", "-o", f"{scratch}/{index}/insula", one], check=True)
                mounts.append(Mount(f"{scratch}/{index}/insula", f"{scratch}/{index}", given.o))
            measure_inside(mounts[0], executable)
            for mount in mounts[1:]:
                mount.install(executable)
            measure_run(mounts)
        finally:
            for mount in mounts:
                mount.end()


main()
