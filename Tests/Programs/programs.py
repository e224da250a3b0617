#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Makes signed apps of twelve programs of the machine, and has each do real work in its view.

usage: INSULA=path/to/insula programs.py [--table FILE] [PROGRAM...]

Run it as root for a system store with a user of its own, and as another user for a store of one's own. A program
that is not installed is skipped, and said so; with --table none may be, and the table is written.
"""
import argparse
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback

# Nothing is to lie about among the sources.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Kills"))

from mount import INSULA, IS_ROOT, Failure, Mount, run
from table import write_table
from works import ALL, Skipped

USER = "insula-programs"


class Shop:
    """A mounted store, a team that it trusts, and a user who runs what is installed."""

    def __init__(self, scratch):
        self.scratch = scratch
        self.mount = Mount(scratch, [])
        self.environment = dict(os.environ, HOME=scratch, XDG_CONFIG_HOME=f"{scratch}/config")
        self.user = USER if IS_ROOT else pwd.getpwuid(os.getuid()).pw_name
        self.has_made_user = False

    def open(self):
        if IS_ROOT and subprocess.run(["id", USER], capture_output=True).returncode:
            run("useradd", "--no-create-home", USER)
            self.has_made_user = True
        self.mount.start()
        certificate = f"{self.scratch}/root.pem"
        self.insula("identity", "new", "programs", "--team", "ABCDE12345")
        self.insula("identity", "export", "programs", "--certificate", certificate)
        self.insula("trust", "add", certificate)
        self.insula("trust", "add", certificate, "--store", self.mount.store)
        self.insula("user", "add", self.user, "--store", self.mount.store)

    def close(self):
        self.mount.end()
        if self.has_made_user:
            subprocess.run(["userdel", USER], capture_output=True)

    def insula(self, *words):
        return run(INSULA, *words, cwd=self.scratch, env=self.environment)

    def install(self, name, program, *options):
        """Makes an app, signs it, packs it, installs the file, and gives its identifier."""
        place = f"{self.scratch}/apps/{name}"
        os.makedirs(place)
        self.insula("new-app", name, place, "--from", program, *options)
        bundle = f"{place}/{name}.app"
        self.insula("sign", bundle, "--identity", "programs", "--entitlements", f"{place}/{name}.entitlements")
        self.insula("pack", bundle, "-o", bundle + ".tar")
        self.insula("install", bundle + ".tar", "--store", self.mount.store)
        return "org.example." + name.lower()

    def home(self, app):
        return f"{self.mount.point}/Users/{self.user}/Library/Containers/{app}/Data"

    def words(self, app, arguments, options):
        become = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"] if IS_ROOT else []
        return become + [INSULA, "run", "--store", self.mount.point, *options, app, "--args", *arguments]

    def run(self, app, *arguments, text="", status=0, options=(), environment=None):
        """Runs an app; what it prints. It must end with that status, or, for None, with any but 0."""
        done = subprocess.run(self.words(app, arguments, options), input=text.encode(), cwd="/", timeout=120,
                              env={**os.environ, **(environment or {})},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        printed = done.stdout.decode(errors="replace")
        is_good = done.returncode != 0 if status is None else done.returncode == status
        if not is_good:
            raise Failure(f"{app} {' '.join(arguments)[:200]}: status {done.returncode}\n{printed[-2000:]}")
        if done.returncode < 0 or 128 < done.returncode < 128 + signal.NSIG:
            raise Failure(f"{app} was ended by a signal ({done.returncode}): {printed[-2000:]}")
        return printed

    def start(self, app, *arguments, options=(), environment=None):
        """Starts an app that goes on until it is ended."""
        return subprocess.Popen(self.words(app, arguments, options), cwd="/", stdin=subprocess.DEVNULL,
                                env={**os.environ, **(environment or {})},
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        try:
            return process.communicate(timeout=20)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            process.kill()
            raise Failure("it did not end by SIGTERM")

    def read(self, app, path):
        with open(f"{self.home(app)}/{path}", "rb") as file:
            return file.read()

    def write(self, app, path, text):
        """Puts a file into an app's container, which it can read and write."""
        place = f"{self.home(app)}/{path}"
        with open(place, "w") as file:
            file.write(text)
        if IS_ROOT:
            shutil.chown(place, self.user, self.user)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", metavar="FILE", help="write what was found to this file")
    parser.add_argument("programs", nargs="*", help=", ".join(work.name for work in ALL))
    arguments = parser.parse_args()
    unknown = set(arguments.programs) - {work.name for work in ALL}
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    wanted = [work for work in ALL if not arguments.programs or work.name in arguments.programs]
    scratch = tempfile.mkdtemp(prefix="insula-programs-")
    os.chmod(scratch, 0o755)
    shop = Shop(scratch)
    failed, skipped = [], []
    try:
        shop.open()
        for work in wanted:
            try:
                work.do(shop)
                print(f"{work.name}: {work.did}", flush=True)
            except Skipped as reason:
                skipped.append(work.name)
                print(f"{work.name}: SKIPPED, {reason}", flush=True)
            except Exception as error:
                failed.append(work.name)
                print(f"{work.name}: FAILED", flush=True)
                print("".join(traceback.format_exception(error)) if not isinstance(error, Failure) else error)
    finally:
        shop.close()
        shutil.rmtree(scratch, ignore_errors=True)
    if skipped:
        print(f"SKIPPED, because they are not installed: {', '.join(skipped)}")
    if arguments.table and not failed:
        if skipped or len(wanted) != len(ALL):
            sys.exit("the table is of all programs; install those that are missing")
        write_table(arguments.table, ALL)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
