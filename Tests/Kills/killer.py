# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Ends the process that serves, again and again."""
import os
import random
import shutil
import signal
import threading
import time

from mount import Failure, run


class Killer(threading.Thread):
    """Kills the worker at random moments until it is told to stop."""

    def __init__(self, mount, number=signal.SIGKILL, twice=False, between=(0.02, 0.4)):
        super().__init__(daemon=True)
        self.mount, self.number, self.twice, self.between = mount, number, twice, between
        self.pauses = []
        self.kills = 0
        self.failure = None
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.wait(random.uniform(*self.between)):
            try:
                self.kill()
                if self.twice:
                    self.kill(random.uniform(0, 0.02))
            except (OSError, Failure) as failure:
                self.failure = failure
                return
            self.kills += 1

    def stop(self):
        self.stopping.set()
        if self.ident:
            self.join(60)

    def kill(self, delay=0.0):
        end = time.monotonic() + 10
        while (worker := self.mount.worker()) is None:
            if time.monotonic() > end or self.mount.process.poll() is not None:
                raise Failure("there is no worker any more")
        time.sleep(delay)
        self.end(worker)
        began = time.monotonic()
        while self.mount.worker() == worker:
            if time.monotonic() > began + 10:
                raise Failure("the worker is still there")
            time.sleep(0.0005)
        self.mount.touch()
        self.pauses.append(time.monotonic() - began)

    def end(self, worker):
        os.kill(worker, self.number)


class UpgradeKiller(Killer):
    """Puts one of several programs in place of the running one, in turn, by 'insula restart'."""

    def __init__(self, mount, programs, **options):
        super().__init__(mount, **options)
        self.programs = programs

    def end(self, worker):
        new = f"{self.mount.program}.new"
        shutil.copyfile(self.programs[self.kills % len(self.programs)], new)
        os.chmod(new, 0o755)
        os.rename(new, self.mount.program)
        run(self.mount.program, "restart", self.mount.store)
        with open(self.mount.program, "rb") as file:
            installed = os.fstat(file.fileno()).st_ino
        for pid in (self.mount.keeper, self.mount.worker()):
            if os.stat(f"/proc/{pid}/exe").st_ino != installed:
                raise Failure(f"process {pid} runs another program than the installed one")


def described(pauses):
    """What is to be said of pauses."""
    if not pauses:
        return "no pause"
    pauses = sorted(pauses)

    def share(part):
        return pauses[min(len(pauses) - 1, int(len(pauses) * part))] * 1000

    return (f"pause {share(0.5):.0f} ms median, {share(0.99):.0f} ms 99th percentile, "
            f"{pauses[-1] * 1000:.0f} ms at most")
