#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""How long short commands take from start to end, beside those of other programs: commands.py [--save]

All take turns in one run: five rounds, in each of which every command is run for at least 0.3 s, forwards and
backwards by turns, after a round that does not count. Prints milliseconds for a run (the median over all runs,
the quartiles, the fastest one) and each program's size; with --save, writes results/commands.md too. INSULA names
the program, or it is .build/release/insula; it is measured without symbols, as packages have it.
"""
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 5
SECONDS = 0.3
ROOT = pathlib.Path(__file__).resolve().parent.parent
# A word for the table, and the command; {store} is an empty store that nobody has mounted.
OWN = ["version", "help", "completions bash", "config", "user list --store {store}", "apps --store {store}"]
OTHERS = ["true", "flatpak --version", "podman --version", "gocryptfs -version", "restic version"]


def fail(text):
    sys.exit(f"commands.py: {text}")


class Contender:
    def __init__(self, label, words):
        self.label = label
        self.program = shutil.which(words[0])
        self.words = words
        self.samples = []

    def once(self, environment):
        """Nanoseconds of one run; fails if the command does."""
        begin = time.perf_counter_ns()
        pid = os.posix_spawn(self.program, self.words, environment, file_actions=SILENT)
        status = os.waitpid(pid, 0)[1]
        taken = time.perf_counter_ns() - begin
        if status != 0:
            fail(f"'{self.label}' failed with {os.waitstatus_to_exitcode(status)}")
        return taken

    def round(self, environment, counts):
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            taken = self.once(environment)
            if counts:
                self.samples.append(taken / 1e6)

    def row(self):
        low, median, high = statistics.quantiles(self.samples, n=4)
        size = os.stat(os.path.realpath(self.program)).st_size / 1e6
        return [
            f"`{self.label}`", f"{median:.2f}", f"{low:.2f} - {high:.2f}", f"{min(self.samples):.2f}",
            str(len(self.samples)), f"{size:.2f}",
        ]


def contenders(program, store):
    found, absent = [], []
    for command in OWN:
        found.append(Contender("insula " + command.replace(" --store {store}", ""),
                               [program] + command.format(store=store).split()))
    for command in OTHERS:
        words = command.split()
        (found if shutil.which(words[0]) else absent).append(Contender(command, words))
    return found, [contender.label for contender in absent]


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    load = " ".join(open("/proc/loadavg").read().split()[:3])
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return [
        f"- Date: {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}",
        f"- Commit: {commit.stdout.strip() or 'unknown'}",
        f"- Kernel: {platform.release()}, {os.cpu_count()} CPUs, {model}",
        f"- Load: {load} before the run",
        f"- Control sockets in /run/insula: {len(list(pathlib.Path('/run/insula').glob('*')))}",
        f"- Rounds: {ROUNDS} of {SECONDS} s for each command, by turns",
    ]


def table(rows):
    head = ["command", "median, ms", "quartiles, ms", "fastest, ms", "runs", "size, MB"]
    lines = [head, ["---"] + ["---:"] * 5] + rows
    return ["| " + " | ".join(line) + " |" for line in lines]


def main():
    global SILENT
    if sys.argv[1:] not in ([], ["--save"]):
        fail("the only argument is --save")
    program = os.environ.get("INSULA") or str(ROOT / ".build/release/insula")
    if not os.access(program, os.X_OK):
        fail(f"there is no {program}; 'make build' builds it, or name another one with INSULA=")
    with tempfile.TemporaryDirectory() as place:
        stripped, store = f"{place}/insula", f"{place}/store"
        subprocess.run(["strip", "-o", stripped, program], check=True)
        environment = {"PATH": os.environ["PATH"], "HOME": place, "XDG_RUNTIME_DIR": place, "LC_ALL": "C.UTF-8"}
        null = os.open(os.devnull, os.O_RDWR)
        SILENT = [(os.POSIX_SPAWN_DUP2, null, stream) for stream in range(3)]
        subprocess.run([stripped, "init", store], env=environment, check=True, stdout=subprocess.DEVNULL)
        found, absent = contenders(stripped, store)
        facts = machine()
        for number in range(ROUNDS + 1):
            for contender in found if number % 2 == 0 else reversed(found):
                contender.round(environment, counts=number > 0)
        lines = ["# Start of commands", ""] + facts
        lines += [f"- Not on this machine: {', '.join(absent)}"] if absent else []
        lines += ["", "From the start of the program until it has ended, its output thrown away. A store is there, not mounted,"]
        lines += ["without apps and homes; 'insula apps' asks every daemon on the machine whether it has that store. The size is that of the program's own file.", ""]
        lines += table([contender.row() for contender in found])
    print("\n".join(lines))
    if "--save" in sys.argv:
        (ROOT / "Benchmarks/results/commands.md").write_text("\n".join(lines) + "\n")


main()
