# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""A control group without memory, or without room for processes."""
import os
import random
import signal
import subprocess
import sys
import time

from killer import Killer
from mount import Failure, status_number


class Group:
    """A control group of the first version or of the second, with a limit of memory or of processes.

    Whoever is not root needs one of their own to make it in: KILLS_CGROUP is its directory.
    """

    def __init__(self, kind):
        old, new = f"/sys/fs/cgroup/{kind}", "/sys/fs/cgroup"
        self.is_old = os.path.isdir(old)
        above = os.environ.get("KILLS_CGROUP") or (old if self.is_old else new)
        self.path = f"{above}/insula-kills-{os.getpid()}"
        os.mkdir(self.path)

    def add(self, pid):
        self.write("cgroup.procs", pid)

    def write(self, name, value):
        with open(f"{self.path}/{name}", "w") as file:
            file.write(str(value))

    def memory(self):
        with open(f"{self.path}/" + ("memory.usage_in_bytes" if self.is_old else "memory.current")) as file:
            return int(file.read())

    def limit(self, size):
        name = "memory.limit_in_bytes" if self.is_old else "memory.max"
        self.write(name, size if size else -1 if self.is_old else "max")

    def end(self):
        # Those who are left go elsewhere.
        with open(f"{self.path}/cgroup.procs") as file:
            pids = file.read().split()
        for pid in pids:
            try:
                with open(os.path.dirname(self.path) + "/cgroup.procs", "w") as file:
                    file.write(pid)
            except OSError:
                pass
        os.rmdir(self.path)


# Processes that take memory, each less than makes it the first that the kernel ends, and more than makes it
# the last.
HOGS = """
import os, sys, time
print("ready", flush=True)
sys.stdin.readline()
while True:
    if os.fork() == 0:
        taken = b"x" * (12 << 20)
        time.sleep(60)
        os._exit(0)
    time.sleep(0.01)
"""


class MemoryKiller(Killer):
    """Has the kernel end the worker, for want of memory."""

    def __init__(self, mount, **options):
        super().__init__(mount, **options)
        self.group = Group("memory")
        for pid in (mount.keeper, mount.worker()):
            self.group.add(pid)

    def end(self, worker):
        hogs = subprocess.Popen([sys.executable, "-c", HOGS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                start_new_session=True)
        try:
            hogs.stdout.readline()
            self.group.add(hogs.pid)
            self.group.limit(400 << 20)
            hogs.stdin.write(b"go\n")
            hogs.stdin.flush()
            end = time.monotonic() + 20
            while self.mount.worker() == worker:
                if time.monotonic() > end:
                    raise Failure("the kernel has not ended the worker")
                time.sleep(0.0005)
            # What others take comes back after a while.
            time.sleep(random.uniform(0, 0.2))
        finally:
            self.group.limit(None)
            os.killpg(hogs.pid, signal.SIGKILL)
            hogs.wait()
        if self.mount.process.poll() is not None:
            raise Failure("the kernel has ended the keeper")


class ProcessKiller(Killer):
    """Leaves no room for another worker, or only for some of its threads, for a while."""

    def __init__(self, mount, **options):
        super().__init__(mount, **options)
        self.group = Group("pids")
        for pid in (mount.keeper, mount.worker()):
            self.group.add(pid)

    def end(self, worker):
        self.group.write("pids.max", random.choice([0, 1, 2, 4, 8]))
        os.kill(worker, signal.SIGKILL)
        time.sleep(random.uniform(0.1, 0.5))
        self.group.write("pids.max", "max")


def check_victim(mount):
    """The kernel is to end the worker rather than the keeper."""
    def score(pid):
        with open(f"/proc/{pid}/oom_score_adj") as file:
            return int(file.read())

    if not score(mount.keeper) < score(mount.worker()):
        raise Failure(f"oom_score_adj of the keeper is {score(mount.keeper)}")
    return status_number(mount.keeper, "VmRSS"), status_number(mount.worker(), "VmRSS")
