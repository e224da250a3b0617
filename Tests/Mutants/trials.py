# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Runs the tests with a fault turned on."""
import os
import re
import subprocess
import threading
import time

FOUND, MISSED, EQUIVALENT, BROKEN = "found", "NOT FOUND", "equivalent", "not tried"
OUTCOMES = (FOUND, MISSED, EQUIVALENT, BROKEN)

# What is to find a drawn fault in a module, the nearest first; and before them the suites
# that the list names for the same file.
TARGETS = {
    "JSON": ["JSONTests", "StoreTests"],
    "PropertyLists": ["BundlesTests"],
    "ContentLines": ["ContentLinesTests"],
    "LinuxIO": ["LinuxIOTests", "StoreTests", "FuseTests", "VolumeTests", "AppsTests"],
    "Policy": ["PolicyTests", "StoreTests", "BundlesTests", "VolumeTests", "AppsTests"],
    "Bundles": ["BundlesTests", "AppsTests"],
    "Fuse": ["FuseTests", "VolumeTests"],
    "Store": ["StoreTests", "AppsTests", "CommandsTests"],
    "Apps": ["AppsTests", "CommandsTests"],
    "Volume": ["VolumeTests"],
    "Daemon": ["CommandsTests"],
    "Commands": ["CommandsTests"],
}
# Beside what the suites take without a fault: load comes and goes.
FACTOR, GRACE = 4, 30
BASE_LIMIT = 1800
FAILED = re.compile(r"Test (\w+)\(.*recorded an issue|Test (\w+)\(.*\) failed after")
FAILURE = re.compile(r"^\S+ Test .* recorded an issue ")
COUNT = re.compile(r"Test run with (\d+) tests?")

# In the namespace of one run. The machine's files can't be written to; what goes to these places goes to a
# layer that is left with the run. /tmp is a directory of the copy: the stores need a real filesystem.
PLACES = """
set -e
tree=$1; layers=$tree/.layers; shift
rm -rf "$layers" "$tree/.tmp"
mkdir -p "$layers"; mkdir -m 1777 "$tree/.tmp"
mount --bind "$tree" "$tree"
mount --bind "$tree/.tmp" /tmp
for name in etc var home root; do
  mkdir -p "$layers/$name.up" "$layers/$name.work"
  chmod --reference="/$name" "$layers/$name.up"
  mount -t overlay -o "lowerdir=/$name,upperdir=$layers/$name.up,workdir=$layers/$name.work" overlay "/$name"
done
mount --bind "$tree" "$tree"
mount --bind / /
mount -o remount,bind,ro /
cd "$tree"
exec "$@"
"""


class Run:
    """One run of some tests."""

    def __init__(self, text, status, seconds, failed):
        self.text, self.status, self.seconds, self.has_failed = text, status, seconds, failed

    @property
    def count(self):
        found = COUNT.findall(self.text)
        return int(found[-1]) if found else None


class Trial:
    def __init__(self, tree):
        self.tree = tree.path
        # Programs of other users write there, too.
        self.seen = self.tree / ".seen"
        self.known, self.remarks = {}, []

    def of(self, fault, turned_on=None):
        """What became of a fault, and a word on it."""
        number = fault.number if turned_on is None else turned_on
        suites = [(suite, rf"\.{suite}/") for suite in fault.suites]
        targets = [] if fault.name not in RULE_NAMES else TARGETS[fault.file.split("/")[1]]
        asked, reached = 0, 0
        for name, pattern in suites + [(target, rf"^{target}\.") for target in targets]:
            base = self.base(name, pattern)
            if base is None:
                continue
            seconds, skipped, seen = base
            asked += 1
            # No test can find what it does not come by.
            if number != 0 and number not in seen:
                continue
            reached += 1
            run = self.run(pattern, skipped, number, seconds * FACTOR + GRACE)
            if run.status is None:
                return FOUND, f"by the limit of {name}"
            if run.has_failed or run.status:
                return FOUND, f"by {name}"
        if asked == 0:
            return BROKEN, "there are no suites for it that pass without it"
        return MISSED, "" if reached else "no test that was asked comes by"

    def prepare(self, faults):
        """Tries the suites of faults that will not be turned off again."""
        for suite in sorted({suite for fault in faults for suite in fault.suites}):
            self.base(suite, rf"\.{suite}/")

    def base(self, name, pattern):
        """How long it takes without a fault, which tests fail then, and which faults it comes by; None if that
        says nothing."""
        if pattern not in self.known:
            self.known[pattern] = self._find_base(name, pattern)
        return self.known[pattern]

    def _find_base(self, name, pattern):
        skipped = set()
        for _ in range(3):
            run = self.run(pattern, skipped, 0, BASE_LIMIT, stops=False)
            if run.status is None or run.count in (None, 0):
                break
            if run.status == 0:
                if skipped:
                    self.remarks.append(f"Left out of {name}, as they fail without a fault: "
                                        + ", ".join(sorted(skipped)))
                return run.seconds, skipped, {int(word) for word in self.seen.read_text().split()}
            skipped |= {one or other for one, other in FAILED.findall(run.text)}
        (self.tree / f"{name}.log").write_text(run.text)
        self.remarks.append(f"Not asked: {name}, which fails without a fault; see {self.tree}/{name}.log")
        return None

    def run(self, pattern, skipped, number, limit, stops=True):
        """Runs tests with a fault; ends at the first failure if it `stops`, and with all that it has started."""
        binary = os.path.realpath(self.tree / ".build/debug") + "/insulaPackageTests.xctest"
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", PLACES, "sh",
                 str(self.tree), binary, "--testing-library", "swift-testing", "--filter", pattern]
        for name in sorted(skipped):
            words += ["--skip", rf"/{name}\("]
        environment = dict(os.environ, INSULA_MUTANT=str(number), TMPDIR="/tmp")
        if number == 0:
            self.seen.write_text("")
            self.seen.chmod(0o666)
            environment["INSULA_MUTANTS_SEEN"] = str(self.seen)
        began = time.monotonic()
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment,
                                   stderr=subprocess.STDOUT)
        late = threading.Event()

        def end():
            late.set()
            process.kill()

        timer = threading.Timer(limit, end)
        timer.start()
        lines, failed = [], False
        try:
            for line in process.stdout:
                lines.append(line.decode(errors="replace"))
                failed = failed or FAILURE.match(lines[-1]) is not None
                if failed and stops:
                    break
            else:
                process.wait()
        finally:
            timer.cancel()
            # With it goes its namespace of processes.
            process.kill()
            status = process.wait()
            process.stdout.close()
        is_late = late.is_set() and not failed
        return Run("".join(lines), None if is_late else status, time.monotonic() - began, failed)


# A drawn fault is named after its rule.
RULE_NAMES = {"negate", "drop", "off by one", "operator", "swap"}
