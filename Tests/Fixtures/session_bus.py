# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# A session bus of a test's own, in TMPDIR, with a process that serves on it.
import os, signal, subprocess


class SessionBus:
    def __init__(self):
        words = ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1"]
        self.daemon = subprocess.Popen(words + [f"--address=unix:dir={os.environ['TMPDIR']}"], stdout=subprocess.PIPE,
                                       text=True)
        os.environ["DBUS_SESSION_BUS_ADDRESS"] = self.daemon.stdout.readline().strip()

    def end(self):
        os.kill(self.daemon.pid, signal.SIGKILL)

    def run(self, command, serve):
        """Runs a command as soon as serve(READY), in another process, has written to READY; its exit status."""
        reading, writing = os.pipe()
        service = os.fork()
        if service == 0:
            try:
                serve(writing)
            finally:
                os._exit(1)
        os.close(writing)
        status = 99
        if os.read(reading, 1):
            status = subprocess.run(command, timeout=100).returncode
        os.kill(service, signal.SIGKILL)
        self.end()
        return status
