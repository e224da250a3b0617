# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""An app that runs in its view."""
import os
import pwd
import subprocess

from mount import INSULA, IS_ROOT, Failure, run


class AppLoad:
    def app(self):
        """An app that works in its container, and is told the truth about its end."""
        script = """
            n=0; end=$(($(date +%s) + 8)); mkdir -p Documents/made
            while [ $(date +%s) -lt $end ]; do
              n=$((n + 1)); echo $n > Documents/made/$n || exit 101
              [ "$(cat Documents/made/$n)" = $n ] || exit 102
              mv Documents/made/$n Documents/last || exit 103
              echo line >> Documents/log || exit 104
              ls Documents/made > /dev/null || exit 105
              mkdir Library/Caches/d && rmdir Library/Caches/d || exit 106
            done
            [ $(wc -l < Documents/log) = $n ] || exit 108
            rm Documents/log; exit 107"""
        words = []
        if IS_ROOT:
            words = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"]
        words += [INSULA, "run", "--store", self.mount.point, "org.example.kills", "--", "sh", "-c", script]
        text = ""
        # A command whose daemon dies says so, and fails; what runs in a view goes on.
        for _ in range(20):
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, cwd="/")
            text = done.stdout.decode(errors="replace")
            if done.returncode > 100:
                break
        if done.returncode != 107:
            raise Failure(f"the app ended with {done.returncode}: {text}")

    @property
    def user(self):
        """The user who runs the app."""
        return "insula-kills" if IS_ROOT else pwd.getpwuid(os.getuid()).pw_name

    def prepare_app(self):
        """Installs it: a command whose daemon dies fails, and says so."""
        if IS_ROOT and subprocess.run(["id", self.user], capture_output=True).returncode:
            run("useradd", "--no-create-home", self.user)
        own = dict(os.environ, HOME=self.scratch, XDG_CONFIG_HOME=f"{self.scratch}/config")
        store, certificate = self.mount.store, f"{self.scratch}/root.pem"
        run(INSULA, "identity", "new", "kills", "--team", "ABCDE12345", cwd=self.scratch, env=own)
        run(INSULA, "identity", "export", "kills", "--certificate", certificate, env=own)
        run(INSULA, "trust", "add", certificate, "--store", store)
        run(INSULA, "user", "add", self.user, "--store", store)
        os.makedirs(f"{self.scratch}/apps")
        run(INSULA, "new-app", "Kills", f"{self.scratch}/apps")
        bundle = f"{self.scratch}/apps/Kills.app"
        run(INSULA, "sign", bundle, "--identity", "kills", env=own)
        run(INSULA, "install", bundle, "--store", store)
