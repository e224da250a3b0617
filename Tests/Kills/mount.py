# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""A store that is mounted, and the processes behind it."""
import json
import os
import shutil
import signal
import subprocess
import time

INSULA = os.environ.get("INSULA", "insula")
IS_ROOT = os.getuid() == 0


class Failure(Exception):
    pass


def run(*words, cwd=None, timeout=300, **options):
    done = subprocess.run(words, cwd=cwd, timeout=timeout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **options)
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        raise Failure(f"{' '.join(words)[:200]}: status {done.returncode}\n{text[-2000:]}")
    return text


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def status_number(pid, label):
    """A number of /proc/PID/status."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(label + ":"))


class Mount:
    def __init__(self, scratch, options, stores=None):
        self.scratch = scratch
        self.store = f"{stores or scratch}/store"
        self.point = f"{scratch}/mnt"
        self.options = options
        os.makedirs(self.point)
        # A program of its own, which can be replaced by another one.
        self.program = f"{scratch}/insula"
        shutil.copyfile(shutil.which(INSULA) or INSULA, self.program)
        os.chmod(self.program, 0o755)
        run(INSULA, "init", self.store)

    def start(self):
        self.start_quickly()
        time.sleep(0.3)

    def start_quickly(self):
        words = [word for option in ["restarts=1000000"] + self.options for word in ("-o", option)]
        self.process = subprocess.Popen([self.program, "mount", "--foreground", self.store, self.point] + words,
                                        stdout=open(f"{self.scratch}/log", "ab"), stderr=subprocess.STDOUT)
        end = time.monotonic() + 20
        while not os.path.ismount(self.point):
            if time.monotonic() > end or self.process.poll() is not None:
                raise Failure("it did not mount: " + self.log())
            time.sleep(0.01)
        self.place = f"{self.point}/{self.inside}"
        os.makedirs(self.place, exist_ok=True)

    # Where the loads work, in the tree.
    inside = "Users/Shared/kills"

    @property
    def keeper(self):
        return self.process.pid

    def worker(self):
        found = [pid for pid in children(self.keeper) if self.is_worker(pid)]
        return found[0] if found else None

    @staticmethod
    def is_worker(pid):
        try:
            with open(f"/proc/{pid}/comm") as file:
                return file.read().strip() != "insula-mounts"
        except OSError:
            return False

    def status(self):
        return json.loads(run(INSULA, "status", self.store, "--json"))

    def log(self):
        with open(f"{self.scratch}/log", errors="replace") as file:
            return file.read()[-1500:]

    def touch(self):
        """Asks for what the kernel can't know, so that the daemon must answer."""
        try:
            os.stat(f"{self.place}/nothing-{os.urandom(8).hex()}")
        except FileNotFoundError:
            pass

    def end(self):
        subprocess.run([INSULA, "unmount", self.point], timeout=60, stdout=subprocess.DEVNULL,
                       stderr=subprocess.STDOUT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            for pid in children(self.keeper):
                os.kill(pid, signal.SIGKILL)
            self.process.kill()
            subprocess.run(["umount", "-l", self.point])
