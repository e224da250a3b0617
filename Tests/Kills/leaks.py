# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""What is left of many kills, when all that was done meanwhile is over."""
import ctypes
import os
import struct
import threading
import time

from killer import Killer, described
from loads import Loads
from mount import IS_ROOT, Failure, status_number

LIBC = ctypes.CDLL(None, use_errno=True)


class Numbers:
    """What a mount has of everything."""

    def __init__(self, mount):
        self.mount = mount
        self.counts = {}
        self.sizes = {}
        status = mount.status()
        for name in ("nodes", "openFiles", "openDirectories", "locks", "descriptors", "views"):
            self.counts[name] = status[name]
        fds = [os.readlink(f"/proc/{mount.keeper}/fd/{fd}") for fd in os.listdir(f"/proc/{mount.keeper}/fd")]
        self.counts["descriptors of the keeper"] = len(fds)
        self.counts["threads"] = status_number(mount.worker(), "Threads")
        self.sizes["memory of the worker"] = status_number(mount.worker(), "VmRSS")
        self.sizes["memory of the keeper"] = status_number(mount.keeper, "VmRSS")
        self.sizes["shared memory"] = sum(
            os.stat(f"/proc/{mount.keeper}/fd/{fd}").st_blocks // 2
            for fd in os.listdir(f"/proc/{mount.keeper}/fd")
            if os.readlink(f"/proc/{mount.keeper}/fd/{fd}").startswith("/memfd:insula"))

    def __str__(self):
        return ", ".join([f"{name} {count}" for name, count in self.counts.items()]
                         + [f"{name} {size} KiB" for name, size in self.sizes.items()])

    def more_than(self, other):
        """What there is more of; caches may differ by a little."""
        found = [name for name, count in self.counts.items()
                 if count > other.counts[name] + (4 if name == "threads" else 0)]
        found += [name for name, size in self.sizes.items() if size > other.sizes[name] * 1.3 + 4096]
        return found


def forget_names(mount):
    """Has the kernel forget all names in the mount that nobody uses: that is what a remount does first."""
    no_suid, no_devices, remount = 2, 4, 32
    if IS_ROOT and LIBC.mount(None, mount.point.encode(), None, remount | no_suid | no_devices, None) != 0:
        raise Failure(f"can't remount: {os.strerror(ctypes.get_errno())}")


def left_backings(mount):
    """How many files are registered for passthrough, while nothing is open; takes them back."""
    if not IS_ROOT or not mount.status()["passthrough"]:
        return 0
    pidfd_getfd, backing_open, backing_close = 438, 0x4010e501, 0x4004e502
    count = 0
    pidfd = os.pidfd_open(mount.keeper)
    memory = os.memfd_create("kills")
    for name in os.listdir(f"/proc/{mount.keeper}/fd"):
        if os.readlink(f"/proc/{mount.keeper}/fd/{name}") != "/dev/fuse":
            continue
        device = LIBC.syscall(pidfd_getfd, pidfd, int(name), 0)
        if device < 0:
            raise Failure(f"pidfd_getfd: {os.strerror(ctypes.get_errno())}")
        # They are numbered one after another.
        last = LIBC.ioctl(device, backing_open, struct.pack("iIQ", memory, 0, 0))
        for number in range(max(1, last - 200_000), last + 1):
            if LIBC.ioctl(device, backing_close, struct.pack("i", number)) == 0:
                count += 1
        # Our own.
        count -= 1
        os.close(device)
    os.close(memory)
    os.close(pidfd)
    return count


def under_load(mount, loads, names, kills, **options):
    """Runs all these loads at once until so many kills have happened."""
    killer = Killer(mount, between=(0.02, 0.2), **options)
    failures = []

    def repeat(name):
        try:
            while not killer.stopping.is_set():
                getattr(loads[name], name)()
        except Exception as failure:
            failures.append(f"{name}: {type(failure).__name__}: {failure}")

    threads = [threading.Thread(target=repeat, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    killer.start()
    while killer.kills < kills and killer.is_alive() and not failures:
        time.sleep(0.01)
    killer.stop()
    for thread in threads:
        thread.join()
    if failures or killer.failure:
        raise Failure("; ".join(failures + [str(killer.failure or "")]))
    return killer


def settled(mount, nodes=0):
    """The numbers when everything is over, with as few nodes as there are to be.

    The daemon asks the kernel about what it was not told, but not at once.
    """
    end = time.monotonic() + (180 if nodes else 0)
    while True:
        forget_names(mount)
        time.sleep(1)
        numbers = Numbers(mount)
        if numbers.counts["nodes"] <= nodes or time.monotonic() > end:
            return numbers


def check(mount, scratch, kills, **options):
    names = ["storm", "locks", "rsync", "app"]
    loads = {name: Loads(mount, scratch) for name in names}
    for name in names:
        loads[name].prepare(name)
    under_load(mount, loads, names, 1, **options)
    first = settled(mount)
    left_backings(mount)
    killer = under_load(mount, loads, names, kills, **options)
    last = settled(mount, first.counts["nodes"])
    backings = left_backings(mount)
    print(f"after the first kill: {first}")
    print(f"after {killer.kills} kills: {last}; {backings} files are registered for passthrough")
    more = last.more_than(first) + (["registered files"] if backings else [])
    if more:
        raise Failure(f"there is more left: {', '.join(more)}")
    return f"{killer.kills} kills, {described(killer.pauses)}"
