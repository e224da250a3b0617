#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Random operations of several processes in two views, with kills and takeovers, against a plain directory.

usage: INSULA=path/to/insula model.py [--rounds N] [--steps N] [--seed S] [-o OPTION] [SEQUENCE]

Two processes work in the whole tree and two in the view of an app that was granted the directory. Between their operations
the worker is killed, or replaced by 'insula restart'. Each operation must give what it gives in a plain directory, and each
process must always see the same names, contents, modes, links, attributes and open files. A sequence that fails is made
shorter for as long as it still fails, and then printed: given as SEQUENCE, it is done again.
"""
import argparse
import json
import os
import pwd
import random
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from apps import AppLoad
from mount import INSULA, IS_ROOT, Mount, run
from sequences import kill
from sides import Side, operations, told

ACTORS = ("tree1", "tree2", "app1", "app2")
HERE = os.path.dirname(os.path.abspath(__file__))
# What a process does: it is told what by a line of JSON, and answers by another.
PROGRAM = """
import json, sys
side = None
for line in sys.stdin:
    order = json.loads(line)
    if order[0] == "begin":
        if side: side.close()
        side, answer = Side(order[1]), "ok"
    elif order[0] == "look":
        answer = repr((side.state(), side.held_state()))
    else:
        answer = side.do(order)
    print(json.dumps(answer), flush=True)
"""


class Actor:
    """A process in a view, or the plain directory's own."""

    def __init__(self, words):
        with open(f"{HERE}/sides.py") as file:
            source = file.read() + PROGRAM
        self.process = subprocess.Popen([*words, "python3", "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, cwd="/", umask=0o022)

    def ask(self, *order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"a process has ended: {self.process.wait(20)}")
        return json.loads(answer)

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


class World(AppLoad):
    def __init__(self, scratch, options):
        self.scratch = scratch
        self.mount = Mount(scratch, options)
        self.plain = f"{scratch}/plain"
        os.mkdir(self.plain)
        self.number = 0

    @property
    def user(self):
        """An account of this run's own, or who runs it."""
        return f"insula-model-{os.getpid()}" if IS_ROOT else pwd.getpwuid(os.getuid()).pw_name

    def start(self):
        self.mount.start()
        self.prepare_app()
        account = pwd.getpwnam(self.user)
        become = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"] if IS_ROOT else []
        for place in (self.mount.place, self.plain):
            os.chown(place, account.pw_uid, account.pw_gid)
        run(*become, INSULA, "grant", "--store", self.mount.point, "org.example.kills", self.mount.place, "--read-write")
        app = [*become, INSULA, "run", "--store", self.mount.point, "org.example.kills", "--"]
        self.actors = {name: Actor(app if name.startswith("app") else become) for name in ACTORS}
        # Each process has open files of its own in the plain directory, too.
        self.models = {name: Actor(become) for name in ACTORS}

    def end(self):
        for actor in [*getattr(self, "actors", {}).values(), *getattr(self, "models", {}).values()]:
            actor.end()
        self.mount.end()
        if IS_ROOT:
            subprocess.run(["userdel", self.user], stderr=subprocess.DEVNULL)

    def attempt(self, steps):
        """What is wrong; None if nothing is."""
        self.number += 1
        places = (f"{self.mount.place}/{self.number}", f"{self.plain}/{self.number}")
        for actors, place in ((self.actors, places[0]), (self.models, places[1])):
            os.mkdir(place)
            Side(place).prepare()
            if IS_ROOT:
                run("chown", "-R", self.user, place)
            for actor in actors.values():
                actor.ask("begin", place)
        try:
            for step in steps:
                if step[0] == "kill":
                    kill(self.mount)
                    continue
                if step[0] == "restart":
                    run(INSULA, "restart", self.mount.store)
                    continue
                answers = [actors[step[0]].ask(*step[1:]) for actors in (self.actors, self.models)]
                if answers[0] != answers[1]:
                    return f"'{told([step])}' gives {answers[0]} instead of {answers[1]}"
            for name in ACTORS:
                seen = [actors[name].ask("look") for actors in (self.actors, self.models)]
                if seen[0] != seen[1]:
                    return f"{name} sees {seen[0]} instead of {seen[1]}"
        finally:
            for place in places:
                shutil.rmtree(place)
        return None

    def shortened(self, steps):
        """The sequence without all that it fails without."""
        size = len(steps) // 2
        while size > 0:
            at = 0
            while at < len(steps):
                rest = steps[:at] + steps[at + size:]
                if rest and self.attempt(rest):
                    steps = rest
                else:
                    at += size
            size //= 2
        return steps


def drawn(draw, length):
    every = operations() + [("look",)] * 12
    steps = []
    for _ in range(length):
        chance = draw.random()
        if chance < .06:
            steps.append(("kill",))
        elif chance < .08:
            steps.append(("restart",))
        else:
            steps.append((draw.choice(ACTORS), *draw.choice(every)))
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--scratch", default=None)
    parser.add_argument("-o", action="append", default=[], help="an option of the mount")
    parser.add_argument("sequence", nargs="?")
    arguments = parser.parse_args()
    scratch = tempfile.mkdtemp(prefix="insula-model-", dir=arguments.scratch)
    os.chmod(scratch, 0o755)
    world = World(scratch, arguments.o)
    draw = random.Random(arguments.seed)
    print(f"seed {arguments.seed}", flush=True)
    failed = None
    done = 0
    try:
        world.start()
        for done in range(1, 2 if arguments.sequence else arguments.rounds + 1):
            given = arguments.sequence and [tuple(step.split()) for step in arguments.sequence.split("; ")]
            steps = given or drawn(draw, arguments.steps)
            failed = world.attempt(steps)
            if failed:
                shortest = steps if given else world.shortened(steps)
                print(f"\"{told(shortest)}\": {world.attempt(shortest) or 'does not fail again: ' + failed}", flush=True)
                break
    finally:
        world.end()
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"{done} rounds of {arguments.steps} steps, {1 if failed else 0} with differences")
    return 1 if failed or not done else 0


if __name__ == "__main__":
    sys.exit(main())
