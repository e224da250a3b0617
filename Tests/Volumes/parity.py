#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""The parity list on volumes of the kernel's filesystems, beside the same filesystem mounted by itself.

What fails on the volume and passes on the other mount is a difference, and has to be named, with its reason, in
known-KIND.txt or in the list of all volumes. Needs root; kinds whose programs are not installed are left out, loudly.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
INSULA = os.environ.get("INSULA", "insula")
CONFORMANCE = os.environ.get("CONFORMANCE", "insula-conformance")
PATH = {**os.environ, "PATH": "/usr/sbin:/sbin:/usr/bin:/bin:" + os.environ.get("PATH", "")}


def run(*words, check=True, timeout=600, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          timeout=timeout, env=PATH, **options)
    text = done.stdout.decode(errors="replace")
    if check and done.returncode:
        sys.exit(f"{' '.join(words)[:300]}: status {done.returncode}\n{text[-2000:]}")
    return text


def known(*names):
    found = {}
    for name in names:
        if os.path.exists(name):
            with open(name) as file:
                for line in file:
                    if line.strip() and not line.startswith("#"):
                        check, _, reason = line.strip().partition(" ")
                        found[check] = reason
    return found


def results(directory, *words, within=()):
    """The checks by their outcome."""
    text = run(*within, CONFORMANCE, "--json", *words, directory, check=False)
    found = {}
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "name" in entry:
            found[entry["name"]] = entry
    return found


def failed(entry):
    return entry.get("verdict") == "not ok"


class Kind:
    def __init__(self, name, program, make, mount, engine):
        self.name, self.program, self.make, self.mount, self.engine = name, program, make, mount, engine


KINDS = [
    Kind("ext4", "mkfs.ext4", "truncate -s 400M {0} && mkfs.ext4 -qF {0}", "mount -o loop {0} {1}", "kernel"),
    Kind("xfs", "mkfs.xfs", "truncate -s 400M {0} && mkfs.xfs -q {0}", "mount -o loop {0} {1}", "kernel"),
    Kind("btrfs", "mkfs.btrfs", "truncate -s 400M {0} && mkfs.btrfs -q {0}", "mount -o loop {0} {1}", "kernel"),
]


def compare(kind, scratch):
    image, plain = f"{scratch}/{kind.name}.img", f"{scratch}/plain"
    run("sh", "-c", kind.make.format(image))
    other = f"{scratch}/{kind.name}-plain.img"
    shutil.copy(image, other)
    # In a namespace of its own, which takes the mount along when it ends.
    own = results(plain, within=("unshare", "-m", "sh", "-c",
                                 kind.mount.format(other, plain) + " >&2 && chmod 1777 " + plain + " ; \"$@\"", "sh"))
    run(INSULA, "volume", "add", "--engine", kind.engine, "--at", kind.name, image, "--store", f"{scratch}/store")
    volume = f"{scratch}/mnt/Volumes/{kind.name}"
    run("chmod", "1777", volume, check=False)
    theirs = results(volume, "--grpid")
    run(INSULA, "volume", "eject", "--force", kind.name, "--store", f"{scratch}/store")
    if len(own) < 400 or len(theirs) < 400:
        sys.exit(f"{kind.name}: the list did not run: {len(own)} checks on its own mount, {len(theirs)} on the volume")
    names = known(f"{HERE}/../Conformance/known-insula.txt", f"{HERE}/../Conformance/known-volume.txt",
                  f"{HERE}/known-{kind.name}.txt")
    differences = [name for name in theirs if failed(theirs[name]) and not failed(own.get(name, {}))]
    unknown = [name for name in differences if name not in names]
    passed = sum(not failed(entry) for entry in theirs.values())
    print(f"{kind.name:8} {len(theirs)} checks: {passed} pass, {sum(map(failed, own.values()))} fail on its own mount, "
          f"{len(differences)} besides on the volume, {len(unknown)} of them without a name", flush=True)
    for name in unknown:
        print(f"  {name}: {theirs[name].get('detail', theirs[name])}")
    return not unknown


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", help="of " + ", ".join(kind.name for kind in KINDS))
    options = parser.parse_args()
    scratch = tempfile.mkdtemp(prefix="insula-parity-", dir="/var/tmp")
    os.chmod(scratch, 0o755)
    is_good = True
    try:
        os.mkdir(f"{scratch}/mnt")
        os.mkdir(f"{scratch}/plain")
        run(INSULA, "init", f"{scratch}/store")
        run(INSULA, "mount", f"{scratch}/store", f"{scratch}/mnt")
        for kind in KINDS:
            if options.kinds and kind.name not in options.kinds:
                continue
            if not shutil.which(kind.program, path=PATH["PATH"]):
                print(f"{kind.name}: LEFT OUT, {kind.program} is not installed")
                continue
            is_good = compare(kind, scratch) and is_good
    finally:
        run(INSULA, "unmount", "--lazy", f"{scratch}/mnt", check=False)
        time.sleep(1)
        shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(0 if is_good else 1)


main()
