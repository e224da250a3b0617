#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Counts what the kernel requests of the daemon while ordinary programs work: requests for each file, by kind.

usage: INSULA=path/to/insula requests.py [--files N] [-o OPTION] [--json] [PROGRAM...]

Run it as root. It makes a store and mounts it, and both are gone when it ends.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

INSULA = os.environ.get("INSULA", ".build/release/insula")


def shell(line, directory):
    subprocess.run(["sh", "-ec", line], cwd=directory, check=True, stdout=subprocess.DEVNULL)


# What is counted, and what is done before it: {n} files of ten bytes are in "src" beside the mount.
PROGRAMS = {
    "tar x": ("", "tar xf {out}/src.tar"),
    "cp -a": ("", "cp -a {out}/src copy"),
    "cp -a within": ("cp -a {out}/src a", "cp -a a b"),
    "rsync -a": ("", "rsync -a {out}/src/ copy/"),
    "git add": ("cp -a {out}/src repo && git -C repo init -q", "git -C repo add ."),
    "git status": ("cp -a {out}/src repo && git -C repo init -q && git -C repo add . && git -C repo commit -qm x",
                   "git -C repo status"),
    "grep -r": ("cp -a {out}/src a; grep -r nothing-like-it a || true", "grep -r nothing-like-it a || true"),
    "ls -lR": ("cp -a {out}/src a; ls -lR a", "ls -lR a"),
    "stat after read": ("cp -a {out}/src a; cat a/*/* ", "find a -type f -printf '%s\\n'"),
    "find": ("cp -a {out}/src a; find a -type f", "find a -type f"),
    "rm -rf": ("cp -a {out}/src a", "rm -rf a"),
    "save": ("", "i=0; while [ $i -lt {n} ]; do echo text > f.new; mv f.new f; i=$((i+1)); done"),
}


class Mounted:
    def __init__(self, options):
        self.top = tempfile.mkdtemp(prefix="insula-requests-")
        self.store, self.point = f"{self.top}/store", f"{self.top}/mnt"
        os.mkdir(self.point)
        subprocess.run([INSULA, "init", self.store], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([INSULA, "mount", self.store, self.point] + [w for o in options for w in ("-o", o)], check=True)

    def counts(self):
        text = subprocess.run([INSULA, "status", "--json", self.store], check=True, capture_output=True).stdout
        return json.loads(text)["requestsByKind"]

    def settled(self):
        """The counts when nothing is under way any more: releases come late."""
        before = None
        while before != (now := self.counts()):
            before = now
            time.sleep(0.2)
        return now

    def end(self):
        subprocess.run([INSULA, "unmount", self.point], check=True)
        shutil.rmtree(self.top, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("-o", action="append", default=[], help="an option of the mount")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    mounted = Mounted(arguments.o)
    found = {}
    try:
        out = f"{mounted.top}/out"
        for number in range(arguments.files):
            os.makedirs(f"{out}/src/{number // 100}", exist_ok=True)
            with open(f"{out}/src/{number // 100}/f{number}", "w") as file:
                file.write(f"{number:9}\n")
        shell("tar cf src.tar src", out)
        for index, name in enumerate(arguments.programs or PROGRAMS):
            before, line = (text.replace("{out}", out).replace("{n}", str(arguments.files)) for text in PROGRAMS[name])
            work = f"{mounted.point}/Users/Shared/{index}"
            os.mkdir(work)
            if before:
                shell(before, work)
            first = mounted.settled()
            shell(line, work)
            last = mounted.settled()
            kinds = {kind: (last[kind] - first.get(kind, 0)) / arguments.files for kind in last}
            found[name] = {kind: count for kind, count in kinds.items() if count >= 0.01}
            shutil.rmtree(work)
            if not arguments.json:
                shown = ", ".join(f"{kind} {count:.2f}" for kind, count in sorted(found[name].items(), key=lambda i: -i[1]))
                print(f"{name:16} {sum(found[name].values()):6.2f}   {shown}", flush=True)
    finally:
        mounted.end()
    if arguments.json:
        json.dump(found, sys.stdout, indent=2)


if __name__ == "__main__":
    main()
