# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""How long the pause is when the kernel knows very many objects."""
import os
import subprocess
import time

from killer import Killer, described
from mount import Failure


def make(mount, count):
    """Makes the files in the store, before it is mounted."""
    top = f"{mount.store}/tree/{mount.inside}"
    os.makedirs(top)
    for number in range(count):
        if number % 1000 == 0:
            directory = f"{top}/{number // 1000}"
            os.mkdir(directory)
        os.close(os.open(f"{directory}/{number}", os.O_WRONLY | os.O_CREAT, 0o644))


def check(mount, kills, **options):
    subprocess.run(["find", mount.place, "-ls"], stdout=subprocess.DEVNULL, check=True)
    known = mount.status()["nodes"]
    killer = Killer(mount, between=(0.5, 1.5), **options)
    killer.start()
    while killer.kills < kills and killer.is_alive():
        # Whoever uses it meanwhile.
        os.listdir(mount.place)
        time.sleep(0.01)
    killer.stop()
    if killer.failure:
        raise Failure(f"killer: {killer.failure}")
    left = mount.status()["nodes"]
    return f"{known} nodes, {left} after that, {killer.kills} kills, {described(killer.pauses)}"
