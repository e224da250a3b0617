#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""The parity list on a volume of each kind, beside the same filesystem or server mounted by its own program.

What fails on the volume and passes on the other mount is a difference, and has to be named, with its reason, in
known-KIND.txt, or in the lists of all mounts and of all volumes. A difference is one that is seen twice. What
known-KIND.txt names has to be one. Needs root; kinds that can't be tried here are left out, loudly.
"""
import argparse
import json
import os
import sys

from kinds import KINDS, LeftOut, Place, chosen, run

HERE = os.path.dirname(os.path.abspath(__file__))
CONFORMANCE = os.environ.get("CONFORMANCE", "insula-conformance")


def known(name):
    found = {}
    if os.path.exists(name):
        with open(name) as file:
            for line in file:
                if line.strip() and not line.startswith("#"):
                    check, _, reason = line.strip().partition(" ")
                    if not reason:
                        sys.exit(f"{name}: {check} has no reason")
                    found[check] = reason
    return found


def results(text):
    """The checks by their outcome."""
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


# Where each call takes a second: what rclone writes is away a second after its file was closed.
SHORT = "access chmod create link mkdir name open permission readdir rename rmdir seek stat symlink truncate unlink xattr"


class Comparison:
    """A kind on its own mount and as a volume, as one user."""

    def __init__(self, place, kind, user, source):
        self.place, self.kind, self.user = place, kind, user
        self.volume = kind.add(place, user, source)

    def on_own(self, *only):
        text = self.kind.mounted(self.place, self.user, CONFORMANCE, "--json", *only)
        found = results(text)
        if not found:
            sys.exit(f"{self.kind.name}: the list does not run on its own mount: {text[-1000:]}")
        return found

    def on_volume(self, *only):
        return results(run(*self.place.become(self.user), CONFORMANCE, "--json", "--grpid", *only, self.volume,
                           check=False, timeout=3600))

    def differences(self):
        only = [word for name in SHORT.split() for word in ("--only", name + ".")] if self.kind.is_slow else []
        own, theirs = self.on_own(*only), self.on_volume(*only)
        least = 200 if self.kind.is_slow else 400
        if len(own) < least or len(theirs) < least:
            sys.exit(f"{self.kind.name}: the list did not run: {len(own)} checks on its own mount, {len(theirs)} on the volume")
        found = [name for name in theirs if failed(theirs[name]) and not failed(own.get(name, {}))]
        if found:
            # What depends on the load of the machine is another time the same on both.
            only = [word for name in found for word in ("--only", name)]
            again_own, again = self.on_own(*only), self.on_volume(*only)
            found = [name for name in found if failed(again.get(name, {})) and not failed(again_own.get(name, {}))]
        return own, theirs, found


def compare(place, kind, user):
    own, theirs, found = Comparison(place, kind, user, kind.prepare(place, user)).differences()
    kind.remove(place, user)
    who = "user" if user else "root"
    everywhere = known(f"{HERE}/../Conformance/known-insula.txt") | known(f"{HERE}/../Conformance/known-volume.txt")
    # A name of what only root sees, or only a user, is written as root:NAME or user:NAME.
    named = known(f"{HERE}/known-{kind.name}.txt")
    here = {name.removeprefix(who + ":"): reason for name, reason in named.items()
            if name.startswith(who + ":") or ":" not in name}
    unknown = [name for name in found if name not in everywhere and name not in here]
    stale = [name for name in here if name not in found]
    if kind.is_slow:
        print(f"{kind.name}: not the whole list, which takes too long there, but " + ", ".join(SHORT.split()))
    count = sum(not failed(entry) for entry in theirs.values())
    print(f"{kind.name:8} {who}: {len(theirs)} checks, {sum(map(failed, own.values()))} fail on its own mount, "
          f"{len(theirs) - count} on the volume; {len(found)} differ, {len(unknown)} of them without a name", flush=True)
    for name in unknown:
        print(f"  {name}: {theirs[name].get('detail', theirs[name])}")
    for name in stale:
        print(f"  {name} is named in known-{kind.name}.txt, but does not differ")
    return not unknown and not stale


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", help="of " + ", ".join(kind.name for kind in KINDS))
    options = parser.parse_args()
    place = Place()
    is_good = True
    try:
        for kind in chosen(options.kinds):
            for user in kind.users:
                try:
                    is_good = compare(place, kind, user) and is_good
                except LeftOut as reason:
                    print(f"{kind.name}: LEFT OUT, {reason}", flush=True)
    finally:
        place.end()
    sys.exit(0 if is_good else 1)


main()
