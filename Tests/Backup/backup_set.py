#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Compares what backup programs find in the view for backups with what the rules say.

usage: INSULA=path/to/insula backup_set.py [--trees N] [--seed N] [--tools tar,rsync,restic,borg]

It makes random trees in homes, containers and elsewhere, with marks on some of what is in them, and has each
program back them up by 'insula backup run'. What each has taken must be what the rules of
Documentation/SEMANTICS.md ("What is backed up") say; they are written down here once more, and nothing is
shared with Insula. As root, for a system store.
"""
import argparse
import json
import os
import random
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import time

INSULA = os.environ.get("INSULA", "insula")
APPLE = b"user.com.apple.metadata:com_apple_backup_excludeItem"
ROBOTS = b"user.xdg.robots.backup"
USERS = [b"ann", b"bob"]


# The rules.


def is_left_out_by_place(names, bundles):
    """Whether a place is not backed up, given the names of its path."""
    if names[:1] in ([b"System"], [b"Network"], [b"Volumes"], [b".Trash"]):
        return True
    if names == [b"Library", b"Caches"]:
        return True
    if b"/".join(names) in bundles:
        return True
    if len(names) < 3 or names[0] != b"Users" or names[1] == b"Shared":
        return False
    inside = names[2:]
    if inside in ([b".Trash"], [b".cache"], [b"Library", b"Caches"]):
        return True
    if inside[:2] == [b"Library", b"Containers"] and inside[3:4] == [b"Data"]:
        return inside[4:] in ([b"tmp"], [b".cache"], [b"Library", b"Caches"])
    if inside[:2] == [b"Library", b"Group Containers"]:
        return inside[3:] == [b"Library", b"Caches"]
    return False


def is_marked(path):
    try:
        if os.getxattr(path, APPLE, follow_symlinks=False) is not None:
            return True
    except OSError:
        pass
    try:
        return os.getxattr(path, ROBOTS, follow_symlinks=False) == b"false"
    except OSError:
        return False


def expected(tree, bundles):
    """What is backed up of a store's tree, read where nobody stands in between."""
    found = set()
    waiting = [(tree, [])]
    while waiting:
        path, names = waiting.pop()
        for entry in os.scandir(path):
            below = names + [entry.name]
            if is_left_out_by_place(below, bundles) or is_marked(entry.path):
                continue
            # Who opens a pipe might wait for ever.
            if stat.S_ISFIFO(entry.stat(follow_symlinks=False).st_mode):
                continue
            found.add(b"/".join(below))
            if entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, below))
    return found


# The programs.


def view(mount, command, **options):
    environment = dict(os.environ, **options.pop("environment", {}))
    result = subprocess.run(
        [INSULA, "backup", "run", "--store", mount, "--"] + command, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if result.returncode:
        sys.exit(f"{command[0]} failed: {result.stderr.decode(errors='replace')}")
    return result


def by_tar(mount, scratch):
    archive = scratch + "/all.tar"
    view(mount, ["tar", "--format=pax", "-cf", archive, "-C", mount, "."])
    with tarfile.open(archive, errors="surrogateescape") as file:
        names = [os.fsencode(member.name) for member in file]
    return {name[2:] if name.startswith(b"./") else name for name in names} - {b"."}


def by_rsync(mount, scratch):
    copy = scratch + "/copy"
    view(mount, ["rsync", "-a", mount + "/", copy + "/"])
    return listed(os.fsencode(copy))


def by_restic(mount, scratch):
    environment = {"RESTIC_PASSWORD": "secret", "RESTIC_CACHE_DIR": scratch + "/cache"}
    repository = scratch + "/restic"
    if not os.path.exists(repository):
        subprocess.run(
            ["restic", "-q", "-r", repository, "init"], env=dict(os.environ, **environment), check=True)
    view(mount, ["restic", "-q", "-r", repository, "backup", mount], environment=environment)
    # Its listing shows names that are no text as something else, so it has to give them back.
    copy = scratch + "/restored"
    subprocess.run(
        ["restic", "-q", "-r", repository, "restore", "latest", "--target", copy],
        env=dict(os.environ, **environment), check=True, stdout=subprocess.DEVNULL)
    return listed(os.fsencode(copy + mount))


def by_borg(mount, scratch):
    environment = {"BORG_BASE_DIR": scratch + "/borg-home", "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"}
    repository = scratch + "/borg"
    if not os.path.exists(repository):
        subprocess.run(
            ["borg", "init", "-e", "none", repository], env=dict(os.environ, **environment), check=True)
    name = f"{repository}::{time.monotonic_ns()}"
    view(mount, ["borg", "create", name, mount], environment=environment)
    copy = scratch + "/extracted"
    os.mkdir(copy)
    subprocess.run(["borg", "extract", name], cwd=copy, env=dict(os.environ, **environment), check=True)
    return listed(os.fsencode(copy + mount))


TOOLS = {"tar": by_tar, "rsync": by_rsync, "restic": by_restic, "borg": by_borg}


def listed(directory):
    found = set()
    for path, directories, files in os.walk(directory):
        for name in directories + files:
            found.add(os.path.relpath(os.path.join(path, name), directory))
    return found


# The trees.

NAMES = [
    b"Library", b"Caches", b"tmp", b".cache", b".Trash", b"Documents", b"Data", b"Containers", b"caches", b"a",
    b"Group Containers", b"System", b"Users", b"x.app", b"CACHEDIR.TAG", b"\xff\xfe", b"new\nline", b" ", b"-n",
    "größe".encode(), b"*", b"Inbox",
]


def bases():
    yield from ([b"Library"], [b"Users", b"Shared"], [b".Trash"], [b"Volumes"], [b"Network"], [b"Applications"])
    for user in USERS:
        home = [b"Users", user]
        yield from (home, home + [b"Library"], home + [b"Documents"], home + [b"Applications"])
        for app in [b"org.example.one", b"org.example.two"]:
            data = home + [b"Library", b"Containers", app, b"Data"]
            yield from (data, data + [b"Library"], data + [b"Documents"], data + [b"tmp"])
        yield home + [b"Library", b"Group Containers", b"group.example"]
        yield home + [b"Library", b"Mobile Documents", b"iCloud~example"]


def mark(path, chance):
    if chance.random() < 0.06:
        os.setxattr(path, APPLE, chance.choice([b"", b"com.apple.backupd", b"x" * 200]))
    if chance.random() < 0.06:
        os.setxattr(path, ROBOTS, chance.choice([b"false", b"true", b""]))


def grow(path, chance, depth):
    """Makes a random tree in a directory, as deep as that at most."""
    for name in chance.sample(NAMES, chance.randint(0, 4)):
        child = os.path.join(path, name)
        if os.path.lexists(child):
            continue
        kind = chance.random()
        if kind < 0.1:
            os.symlink(chance.choice([b"/etc", b"..", b"nowhere"]), child)
        elif kind < 0.13:
            os.mkfifo(child)
            os.chown(child, 65534, 65534)
        elif kind < 0.6 and depth > 0:
            os.mkdir(child)
            mark(child, chance)
            grow(child, chance, depth - 1)
        else:
            with open(child, "wb") as file:
                file.write(name)
            mark(child, chance)


def plant(tree, chance, count):
    for _ in range(count):
        path = tree
        for name in chance.choice(list(bases())):
            path = os.path.join(path, name)
            if not os.path.isdir(path):
                if os.path.lexists(path):
                    os.unlink(path)
                os.mkdir(path)
        # A directory of its own for each tree, or they would all be one.
        if chance.random() < 0.7:
            path = os.path.join(path, b"tree-%d" % chance.getrandbits(40))
            os.mkdir(path)
            mark(path, chance)
        grow(path, chance, 4)


# The store.


def make_store(directory):
    """A store with an installed app, which is copied for each round."""
    store = directory + "/first"
    config = dict(os.environ, XDG_CONFIG_HOME=directory + "/config", HOME=directory)

    def insula(*words, **options):
        return subprocess.run([INSULA, *words], env=config, check=True, stdout=subprocess.PIPE, **options)

    insula("init", store)
    insula("identity", "new", "tester", "--team", "TEAM1")
    root = insula("identity", "export", "tester").stdout
    insula("trust", "add", "-", "--store", store, input=root)
    insula("new-app", "Note", directory)
    insula("sign", directory + "/Note.app")
    insula("install", directory + "/Note.app", "--everyone", "--store", store)
    return store, {b"Applications/Note.app"}


def compare(tool, took, wanted):
    if took == wanted:
        return
    for name in sorted(took - wanted)[:5]:
        print(f"{tool} took {name!r}, which is not backed up")
    for name in sorted(wanted - took)[:5]:
        print(f"{tool} did not take {name!r}, which is backed up")
    sys.exit(f"{tool}: {len(took ^ wanted)} differences")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=100_000)
    parser.add_argument("--each", type=int, default=4000, help="how many trees are in a store at a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tools", default=",".join(TOOLS))
    arguments = parser.parse_args()
    tools = arguments.tools.split(",")
    for tool in tools:
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing: apt-get install {tool}{'backup' if tool == 'borg' else ''}")
    directory = tempfile.mkdtemp(prefix="insula-backup-")
    mount = directory + "/mount"
    os.mkdir(mount)
    done = paths = 0
    try:
        first, bundles = make_store(directory)
        while done < arguments.trees:
            count = min(arguments.each, arguments.trees - done)
            chance = random.Random(f"{arguments.seed} {done}")
            store = directory + "/store"
            subprocess.run(["cp", "-a", first, store], check=True)
            plant(os.fsencode(store + "/tree"), chance, count)
            wanted = expected(os.fsencode(store + "/tree"), bundles)
            subprocess.run([INSULA, "mount", store, mount], check=True, stdout=subprocess.DEVNULL)
            try:
                for tool in tools:
                    scratch = f"{directory}/{tool}"
                    os.mkdir(scratch)
                    compare(tool, TOOLS[tool](mount, scratch), wanted)
                    shutil.rmtree(scratch)
            finally:
                subprocess.run([INSULA, "unmount", mount], check=True, stdout=subprocess.DEVNULL)
            shutil.rmtree(store)
            done += count
            paths += len(wanted)
            print(f"{done} trees, {paths} files and directories, no difference", flush=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
