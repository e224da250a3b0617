#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Grants on a volume of each kind: an app is granted one directory of it, tries to get beyond, and loses the grant.

attempts.py is what it tries. The same by the user outside of a view shows which attempts the kind is capable of, so a
list on which nothing can succeed is seen. Needs root; kinds that can't be tried here are left out, loudly.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

from kinds import INSULA, KINDS, PATH, LeftOut, Place, chosen, run, wait

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"


def install(place):
    """An app that may use what its user grants."""
    os.environ["HOME"] = PATH["HOME"] = place.scratch
    os.environ.pop("XDG_CONFIG_HOME", None)
    run(INSULA, "identity", "new", "volumes", "--team", "ABCDE12345")
    run(INSULA, "identity", "export", "volumes", "--certificate", f"{place.scratch}/root.pem")
    run(INSULA, "trust", "add", f"{place.scratch}/root.pem", "--store", place.store)
    run(INSULA, "new-app", "Reader", place.scratch)
    with open(f"{place.scratch}/rights", "w") as file:
        file.write('<plist version="1.0"><dict><key>com.apple.security.files.user-selected.read-write</key><true/>'
                   "</dict></plist>")
    run(INSULA, "sign", f"{place.scratch}/Reader.app", "--identity", "volumes", "--entitlements",
        f"{place.scratch}/rights")
    run(INSULA, "install", f"{place.scratch}/Reader.app", "--store", place.store)
    return json.loads(run(INSULA, "apps", "--store", place.store, "--json"))[0]["identifier"]


def outcomes(text):
    return dict(line.rsplit(": ", 1) for line in text.splitlines() if ": " in line)


def attempts(place, app, volume, revoke):
    """What comes of the attempts inside of a view, before and after the grant is revoked."""
    with open(f"{HERE}/attempts.py") as file:
        program = file.read()
    process = subprocess.Popen(
        [*place.become(True), INSULA, "run", "--store", place.point, app, "--", PYTHON, "-c", program, volume, "hold"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=PATH, cwd="/")
    lines = []
    try:
        for line in process.stdout:
            lines.append(line.decode(errors="replace"))
            if line.strip() == b"ready":
                break
        else:
            sys.exit("the app has ended:\n" + "".join(lines)[-2000:])
        revoke()
        text, _ = process.communicate(b"\n", timeout=120)
    finally:
        process.kill()
        process.wait()
    return outcomes("".join(lines) + text.decode(errors="replace"))


def judge(kind, outside, inside):
    """Prints what is not as it should be; returns whether all is."""
    wrong = []
    for name, outcome in inside.items():
        mine, after = name.startswith("own: "), name.startswith("after: ")
        if mine and outcome != outside[name]:
            wrong.append(f"{name}: {outcome} with a grant, {outside[name]} without a view")
        if not mine and outcome == "got":
            wrong.append(f"{name}: the app has got it" + (" although the grant was revoked" if after else ""))
    capable = sum(outcome == "got" for name, outcome in outside.items() if not name.startswith("own"))
    count = sum(not name.startswith("own") for name in outside)
    after = sum(name.startswith("after") for name in inside)
    if capable < 15 or after < 12 or not set(outside) <= set(inside):
        wrong.append(f"too little was tried: {capable} of {count} are possible here, {after} after the end of the grant")
    print(f"{kind.name:8} {count} attempts, of which its user could do {capable}; {after} more after the grant was "
          f"revoked; {len(wrong)} wrong", flush=True)
    for line in wrong:
        print(f"  {line}")
    return not wrong


def check(place, kind, user, app):
    volume = kind.add(place, user, kind.prepare(place, user))
    owner = place.become(user)
    run(*owner, "sh", "-ec", 'cd "$0"; umask 0; mkdir mine mine/sub other; echo text >other/secret; echo text >top; '
        "echo text >mine/mine-1; echo text >mine/mine-2; ln -s ../other/secret mine/old-link || true; "
        'chown -R "$1" mine other top || true', volume, str(place.uid))
    try:
        outside = outcomes(run(*place.become(True), PYTHON, f"{HERE}/attempts.py", volume, timeout=120))
        if [name for name, outcome in outside.items() if name.startswith("own") and outcome != "got"]:
            print(f"{kind.name}: its user can't use it: {outside}")
            return False
        none = run(*place.become(True), INSULA, "run", "--store", place.point, app, "--", "sh", "-c",
                   'cat "$0/mine/mine-1"', volume, check=False)
        if "text" in none or "mine-1: " not in none:
            print(f"{kind.name}: before anything is granted: {none}")
            return False
        words = ("--store", place.store, app, f"{volume}/mine")
        run(*place.become(True), INSULA, "grant", *words)
        inside = attempts(place, app, volume, lambda: run(*place.become(True), INSULA, "revoke", *words))
        is_good = judge(kind, outside, inside)
        if run("cat", f"{volume}/top") if not user else run(*owner, "cat", f"{volume}/top"):
            return is_good
    finally:
        kind.remove(place, user)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", help="of " + ", ".join(kind.name for kind in KINDS))
    options = parser.parse_args()
    place = Place()
    is_good = True
    try:
        # Homes of users that the program is run by may be closed to others.
        os.chmod(place.scratch, 0o755)
        app = install(place)
        for kind in chosen(options.kinds):
            for user in kind.users:
                try:
                    is_good = check(place, kind, user, app) and is_good
                except LeftOut as reason:
                    print(f"{kind.name}: LEFT OUT, {reason}", flush=True)
    finally:
        place.end()
    sys.exit(0 if is_good else 1)


main()
