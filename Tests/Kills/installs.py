# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Apps that are installed, updated and removed."""
import json
import os
import random
import subprocess
import time

from mount import INSULA, Failure, run

IDENTIFIER = "org.example.installed"


class InstallLoad:
    def prepare_installs(self):
        """Two versions of an app, each with a few hundred files that say which they belong to."""
        own = dict(os.environ, HOME=self.scratch, XDG_CONFIG_HOME=f"{self.scratch}/config")
        certificate = f"{self.scratch}/root.pem"
        run(INSULA, "identity", "new", "kills", "--team", "ABCDE12345", cwd=self.scratch, env=own)
        run(INSULA, "identity", "export", "kills", "--certificate", certificate, env=own)
        run(INSULA, "trust", "add", certificate, "--store", self.mount.store)
        for version in (1, 2):
            parent = f"{self.scratch}/version-{version}"
            os.makedirs(parent)
            run(INSULA, "new-app", "Installed", parent, "--identifier", IDENTIFIER)
            bundle = f"{parent}/Installed.app"
            with open(f"{bundle}/Contents/Info.plist") as file:
                info = file.read()
            with open(f"{bundle}/Contents/Info.plist", "w") as file:
                file.write(info.replace("<string>1</string>", f"<string>{version}</string>"))
            for index in range(400):
                directory = f"{bundle}/Contents/Resources/{index % 20}"
                os.makedirs(directory, exist_ok=True)
                with open(f"{directory}/{index}", "w") as file:
                    file.write(f"{version} " * (1 + index * 7 % 3000))
            run(INSULA, "sign", bundle, "--identity", "kills", env=own)

    def installs(self):
        """The old state or the new one, and never a part of either."""
        version = self.found()
        end = time.monotonic() + 8
        while time.monotonic() < end or version is not None:
            if version is None:
                version = self.reach(None, random.choice((1, 2)), "install")
            elif version == 1 and random.random() < 0.6:
                version = self.reach(1, 2, "update")
            else:
                version = self.reach(version, None, "uninstall")
        # What is left of commands that were interrupted is for the next process that serves.
        run(INSULA, "restart", self.mount.store)
        text = run(INSULA, "check", self.mount.store)
        if "in order" not in text:
            raise Failure(text)
        end = time.monotonic() + 60
        while left := os.listdir(f"{self.mount.store}/state/staging"):
            if time.monotonic() > end:
                raise Failure(f"{left} were never removed")
            time.sleep(0.05)

    def reach(self, before, after, verb):
        """Gives a command until it has been done: one whose daemon dies fails, and says so."""
        what = IDENTIFIER if after is None else f"{self.scratch}/version-{after}/Installed.app"
        for _ in range(50):
            done = subprocess.run([INSULA, verb, what, "--store", self.mount.point], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=120, cwd="/")
            text = done.stdout.decode(errors="replace")
            now = self.found()
            if done.returncode == 0 and now != after or now not in (before, after):
                raise Failure(f"{verb} ended with {done.returncode}, and version {now} is there: {text}")
            if not text.startswith("insula: ") and done.returncode:
                raise Failure(f"{verb} ended with {done.returncode} without a word: {text}")
            if now == after:
                return after
        raise Failure(f"{verb} was never done: {text}")

    def found(self):
        """The version that is there: by the daemon, and by each of its files."""
        for _ in range(100):
            done = subprocess.run([INSULA, "apps", "--json", "--store", self.mount.point], cwd="/",
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
            if done.returncode == 0:
                break
        else:
            raise Failure(f"apps was never answered: {done.stderr.decode(errors='replace')}")
        apps = [app for app in json.loads(done.stdout) if app["identifier"] == IDENTIFIER]
        bundle = f"{self.mount.point}/Applications/Installed.app"
        if not apps:
            if os.path.exists(bundle):
                raise Failure("a bundle is there that belongs to no app")
            return None
        version = int(apps[0]["build"])
        for index in range(400):
            with open(f"{bundle}/Contents/Resources/{index % 20}/{index}") as file:
                if file.read() != f"{version} " * (1 + index * 7 % 3000):
                    raise Failure(f"file {index} is not of version {version}")
        return version
