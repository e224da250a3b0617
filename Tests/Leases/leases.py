#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Two machines want one store: leases.py [--rounds N] [--places A B]

Each round, the machine that has the store mounted is killed (its processes, by SIGKILL), stands still (SIGSTOP, and
SIGCONT when the other one has the store), or unmounts. The other machine mounts the store at that moment. Programs on
both write lines all the time. Checked: how long it takes until the other one has the store; that nothing was written
through the first one after the second had begun; that a machine which stood still ends and removes its mount; that a
machine is refused while the other one has the store; and 'insula check' at the end.

A machine is a mount namespace with a boot ID and a host name of its own, and a client of its own: a mount by sshfs of
one directory, or --places: two mounts of one filesystem. As root. INSULA names the program, or it is
.build/release/insula.
"""
import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INSULA = os.environ.get("INSULA") or str(ROOT / ".build/release/insula")
SFTP = "/usr/lib/openssh/sftp-server"
SILENCE, LATEST = 45, 100


def fail(text):
    sys.exit(f"leases.py: {text}")


class Machine:
    """A mount namespace, kept by a process that sleeps."""

    def __init__(self, name, scratch, place):
        self.name, self.place = name, place
        self.point = f"{scratch}/{name}-point"
        os.makedirs(self.point)
        boot = f"{scratch}/{name}-boot"
        pathlib.Path(boot).write_text(f"{uuid.uuid4()}\n")
        self.keeper = subprocess.Popen(
            ["unshare", "-m", "-u", "sh", "-c",
             f"mount --bind '{boot}' /proc/sys/kernel/random/boot_id && hostname {name} && echo && exec sleep 100000"],
            stdout=subprocess.PIPE)
        if not self.keeper.stdout.readline():
            fail(f"can't make the namespace of {name}")
        self.writer = None
        self.lines = f"{scratch}/{name}-lines"

    def run(self, *words, timeout=200):
        return subprocess.run(
            ["nsenter", "-t", str(self.keeper.pid), "-m", "-u", *words], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=timeout)

    def insula(self, *words):
        return self.run(INSULA, *words)

    def mount(self):
        return self.insula("mount", f"{self.place}/store", self.point)

    def daemons(self):
        """The processes that serve, of this machine alone."""
        found = []
        for entry in os.listdir("/proc"):
            try:
                words = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"mount" in words and self.point.encode() in words:
                found.append(int(entry))
        return found

    def signal(self, number):
        for pid in self.daemons():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def is_mounted(self):
        return self.point in self.run("cat", "/proc/self/mounts").stdout

    def write(self):
        """Starts a program that adds lines, and notes when each was written."""
        script = (
            "import os, sys, time\n"
            "log = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
            "while True:\n"
            "    try:\n"
            "        file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
            "        os.write(file, b'x' * 100)\n"
            "        os.close(file)\n"
            "    except OSError:\n"
            "        time.sleep(.05)\n"
            "        continue\n"
            "    os.write(log, b'%f\\n' % time.clock_gettime(time.CLOCK_BOOTTIME))\n"
            "    time.sleep(.02)\n")
        self.writer = subprocess.Popen(
            ["nsenter", "-t", str(self.keeper.pid), "-m", "-u", sys.executable, "-c", script,
             f"{self.point}/Users/Shared/{self.name}", self.lines])

    def times(self):
        try:
            return [float(line) for line in open(self.lines)]
        except FileNotFoundError:
            return []

    def end(self):
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        self.run("umount", "-l", self.point)
        if self.writer:
            self.writer.kill()
            self.writer.wait()
        self.keeper.kill()
        self.keeper.wait()


def sftp(directory, point):
    """Mounts a directory by sshfs, which speaks to the server's program itself."""
    os.makedirs(point)
    server = subprocess.Popen([SFTP], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    client = subprocess.Popen(
        ["sshfs", "-f", "-o", "passive", "-o", "allow_other,default_permissions,dir_cache=no,attr_timeout=0,entry_timeout=0", f":{directory}", point],
        stdin=server.stdout, stdout=server.stdin, stderr=subprocess.DEVNULL)
    server.stdin.close(), server.stdout.close()
    for _ in range(100):
        if os.path.ismount(point):
            return [client, server]
        time.sleep(.1)
    fail(f"sshfs does not mount {point}")


def goes_on(machine):
    """Lets a machine go on that stood still for longer than its lease lasts: it must end."""
    machine.signal(signal.SIGCONT)
    end = time.monotonic() + 20
    while (machine.daemons() or machine.is_mounted()) and time.monotonic() < end:
        time.sleep(.1)
    if machine.daemons() or machine.is_mounted():
        fail(f"{machine.name} goes on without a lease")


def round_of(kind, first, second):
    """Has the second machine take the store from the first one; how long that took."""
    refused = second.mount()
    if refused.returncode != 3 or first.name not in refused.stdout:
        fail(f"{second.name} was not refused: {refused.returncode}, {refused.stdout}")
    began = time.monotonic()
    if kind == "unmount":
        first.writer.kill(), first.writer.wait()
        first.writer = None
        done = first.insula("unmount", first.point)
        if done.returncode:
            fail(f"{first.name} can't unmount: {done.stdout}")
    else:
        first.signal(signal.SIGKILL if kind == "kill" else signal.SIGSTOP)
    mounted = second.mount()
    if kind == "stop" and mounted.returncode == 3 and "in use by insula, pid" in mounted.stdout:
        # Where a lock holds across machines, one that stands still has that: it ends when it goes on.
        time.sleep(max(0, began + SILENCE + 1 - time.monotonic()))
        goes_on(first)
        mounted = second.mount()
    took = time.monotonic() - began
    if mounted.returncode:
        fail(f"{kind}: {second.name} can't mount: {mounted.stdout}")
    # A mount answers a moment after it has the store; after an unmount that is at once, and nobody has written since.
    taken = time.clock_gettime(time.CLOCK_BOOTTIME) - (0 if kind == "unmount" else .5)
    if not (took < 5 if kind == "unmount" else SILENCE - 6 < took < LATEST):
        fail(f"{kind}: {second.name} had the store after {took:.1f} s")
    second.write()
    time.sleep(1)
    if kind == "stop":
        goes_on(first)
    time.sleep(2)
    if first.writer:
        first.writer.kill(), first.writer.wait()
        first.writer = None
    first.run("umount", "-l", first.point)
    late = [moment for moment in first.times() if moment > taken]
    if late:
        fail(f"{kind}: {first.name} has written {len(late)} lines after {second.name} had the store")
    if not any(moment > taken for moment in second.times()):
        fail(f"{kind}: {second.name} writes nothing")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--places", nargs=2, metavar="DIRECTORY")
    options = parser.parse_args()
    if os.getuid():
        fail("needs root")
    scratch = tempfile.mkdtemp(prefix="insula-leases-")
    os.chmod(scratch, 0o755)
    processes, machines = [], []
    try:
        places = options.places
        if not places:
            os.makedirs(f"{scratch}/behind")
            places = [f"{scratch}/client-{number}" for number in (1, 2)]
            for place in places:
                processes += sftp(f"{scratch}/behind", place)
        machines = [Machine(name, scratch, place) for name, place in zip(("one", "two"), places)]
        made = machines[0].insula("init", f"{places[0]}/store")
        mounted = machines[0].mount() if not made.returncode else made
        if mounted.returncode:
            fail(mounted.stdout)
        machines[0].write()
        time.sleep(1)
        kinds = (["kill", "stop", "unmount"] * options.rounds)[:options.rounds]
        for number, kind in enumerate(kinds):
            first, second = machines if number % 2 == 0 else machines[::-1]
            took = round_of(kind, first, second)
            print(f"{number + 1:3} {kind:8} {first.name} -> {second.name} after {took:5.1f} s", flush=True)
        last = machines[len(kinds) % 2]
        last.writer.kill(), last.writer.wait()
        last.writer = None
        done = last.insula("unmount", last.point)
        checked = last.insula("check", f"{last.place}/store")
        print(checked.stdout.strip())
        if done.returncode or checked.returncode:
            fail("the store is not as it should be")
    finally:
        for machine in machines:
            machine.end()
        for process in processes:
            process.terminate()
            process.wait()
        for place in os.listdir(scratch):
            subprocess.run(["umount", "-l", f"{scratch}/{place}"], stderr=subprocess.DEVNULL)
        shutil.rmtree(scratch, ignore_errors=True)


main()
