#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Has a program of somebody else's read what 'insula backup export' writes, and import what it has read.

usage: INSULA=path/to/insula itunes_form.py [--files N] [--seed N] [--damage] [--python PYTHON]

It makes a store with an app whose container has files with names of all kinds, exports it, and has pyiosbackup
from PyPI (in a virtual environment of its own) extract each file: contents, sizes, types, modes, times and
owners must be those of the container, and nothing may be missing or be there besides. Then the backup is
imported again. With --damage, a byte of the export is changed first, and the comparison must fail. As root, for
a system store; nothing of the machine is changed.
"""
import argparse
import hashlib
import json
import os
import plistlib
import random
import shutil
import subprocess
import sys
import tempfile

INSULA = os.environ.get("INSULA", "insula")
APP = "org.example.note"
READER = """
import json, sys, hashlib
from pyiosbackup import Backup
backup = Backup.from_path(sys.argv[1])
assert not backup.is_encrypted and backup.version and backup.target_identifier
found = {}
for entry in backup.iter_entries():
    if entry.domain != sys.argv[2]:
        continue
    kind = "file" if entry.is_file() else "directory" if entry.is_dir() else "link"
    found[entry.relative_path] = [
        kind, entry.mode & 0o7777, int(entry.last_modified.timestamp()), entry.user_id, entry.group_id,
        [entry.size, hashlib.sha256(entry.read_bytes()).hexdigest()] if kind == "file" else None]
print(json.dumps([found, sorted(backup.installed_apps)]))
"""


def run(*words, **options):
    result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if result.returncode:
        sys.exit(f"{' '.join(words)} failed: {result.stderr.decode(errors='replace')}")
    return result.stdout.decode()


def fill(place, count, generator):
    """Makes files with names in many scripts, of many sizes, at many depths."""
    alphabets = ["abcdef", "ÄÖüß", "e\u0301o\u0308", "名前資料", "файл", "\U0001f600\U0001f34e", "a b'\"$&", "-.~"]
    folders = [place + "/Documents", place + "/Library"]
    os.makedirs(place + "/Documents/" + "/".join(["deep"] * 60))
    for number in range(count):
        letters = generator.choice(alphabets)
        name = "".join(generator.choice(letters) for _ in range(generator.randint(1, 12))) + str(number)
        path = generator.choice(folders) + "/" + name
        kind = generator.random()
        if kind < 0.15:
            os.mkdir(path, generator.choice([0o700, 0o755, 0o750]))
            folders.append(path)
        elif kind < 0.25:
            os.symlink(generator.choice(["nowhere", "../up", "/no/where", name, "Ä/名"]), path)
        else:
            size = 0 if kind < 0.35 else generator.randint(1, 5000)
            with open(path, "wb") as file:
                file.write(generator.randbytes(size))
            os.chmod(path, generator.choice([0o600, 0o644, 0o755, 0o444]))
            if kind > 0.9:
                os.setxattr(path, "user.com.example.tag", generator.randbytes(20))
        os.utime(path, (1, generator.randint(0, 2_000_000_000)), follow_symlinks=False)
    with open(place + "/Documents/large", "wb") as file:
        for _ in range(40):
            file.write(generator.randbytes(1 << 20))


def listed(place):
    """What such a backup is to have of a container's data."""
    found = {}
    for folder, names, files in os.walk(place):
        if folder == place:
            names[:] = [name for name in names if name in ("Documents", "Library")]
            files[:] = []
        if folder == place + "/Library":
            names.remove("Caches")
        for path in [folder] + [os.path.join(folder, name) for name in names + files]:
            status = os.lstat(path)
            data = None
            kind = "link"
            if os.path.isfile(path) and not os.path.islink(path):
                kind = "file"
                with open(path, "rb") as file:
                    contents = file.read()
                data = [len(contents), hashlib.sha256(contents).hexdigest()]
            elif not os.path.islink(path):
                kind = "directory"
            name = os.path.relpath(path, place)
            found["" if name == "." else name] = [
                kind, status.st_mode & 0o7777, int(status.st_mtime // 1), status.st_uid, status.st_gid, data]
    return found


def compare(expected, found, what):
    differences = [
        f"{path!r}: {expected.get(path)} in the container, {found.get(path)} {what}"
        for path in sorted(set(expected) | set(found)) if expected.get(path) != found.get(path)]
    if differences:
        print("\n".join(differences[:20]))
        sys.exit(f"{len(differences)} of {len(expected)} files differ {what}")


def damage(backup):
    """Changes one byte of one file."""
    for folder in sorted(os.listdir(backup)):
        for name in sorted(os.listdir(backup + "/" + folder)) if len(folder) == 2 else []:
            path = f"{backup}/{folder}/{name}"
            if os.path.getsize(path):
                with open(path, "r+b") as file:
                    byte = file.read(1)[0]
                    file.seek(0)
                    file.write(bytes([byte ^ 1]))
                return
    sys.exit("there was nothing to damage")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--damage", action="store_true")
    parser.add_argument("--python", help="a Python that has pyiosbackup (default: one in a new environment)")
    arguments = parser.parse_args()
    scratch = tempfile.mkdtemp(prefix="insula-itunes-")
    store, mount = scratch + "/store", scratch + "/mount"
    os.environ.update(XDG_DATA_HOME=scratch, XDG_CONFIG_HOME=scratch)
    try:
        python = arguments.python
        if not python:
            run(sys.executable, "-m", "venv", scratch + "/venv")
            python = scratch + "/venv/bin/python3"
            run(python, "-m", "pip", "-q", "install", "pyiosbackup==0.2.4")
        os.mkdir(mount)
        run(INSULA, "init", store)
        run(INSULA, "mount", store, mount)
        run(INSULA, "identity", "new", "tester", "--team", "ABCDE12345")
        run(INSULA, "identity", "export", "tester", "--certificate", scratch + "/root.pem")
        run(INSULA, "trust", "add", scratch + "/root.pem", "--store", store)
        run(INSULA, "user", "add", "root", "--store", store)
        run(INSULA, "new-app", "Note", scratch)
        run(INSULA, "sign", scratch + "/Note.app", "--identity", "tester")
        run(INSULA, "install", scratch + "/Note.app", "--store", store)
        data = run(INSULA, "path", APP, "home", "--store", store).rstrip("\n")
        fill(data, arguments.files, random.Random(arguments.seed))
        backup = scratch + "/backup"
        print(run(INSULA, "backup", "export", backup, "--store", store), end="")
        if arguments.damage:
            damage(backup)
        expected = listed(data)
        found, apps = json.loads(run(python, "-c", READER, backup, "AppDomain-" + APP))
        compare(expected, found, "as pyiosbackup reads the backup")
        with open(backup + "/Info.plist", "rb") as file:
            if plistlib.load(file)["Installed Applications"] != [APP] or apps != [APP]:
                sys.exit("the list of apps differs")
        print(f"pyiosbackup has read {len(found)} files as they are.")
        shutil.rmtree(data + "/Documents/deep")
        with open(data + "/Documents/large", "w") as file:
            file.write("other")
        print(run(INSULA, "backup", "import", backup, "--replace", "--store", store), end="")
        after = listed(data)
        # In these, what is not backed up was made anew.
        for name in ("", "Library"):
            after[name][2] = expected[name][2]
        compare(expected, after, "after the import")
        print(f"All {len(expected)} came back.")
    finally:
        subprocess.run([INSULA, "unmount", "--lazy", mount], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
