#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Puts one small fault after the other into a copy of the tree, and says which of them the tests find.

The faults are in Tests/Mutants/list: a name, a file, the suites that should find it, the text and what stands in its place.
The copy is made once and built anew after each fault. A fault is found if a test fails, or if the suites don't end in time.
A fault whose text is not in its file, or there more than once, and one that does not compile, are failures of the list.

'make mutants' runs all of them, which takes hours; 'make mutants MUTANTS="lock-* gate-sticky"' those. Exit status: 0 if each was
found, 1 if one was not, 2 if the list has a failure or the suites fail as it is.
"""
import argparse
import ctypes
import fnmatch
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "Tests/Mutants/list"
FOUND, NOT_FOUND, BROKEN = "found", "NOT FOUND", "DOES NOT APPLY"


def fail_list(words):
    print(words, file=sys.stderr)
    sys.exit(2)


class Mutant:
    def __init__(self, name, file, suites, old, new):
        self.name, self.file, self.suites, self.old, self.new = name, file, suites, old, new

    def applied(self, tree):
        """The file's text with the fault in it; raises ValueError where it does not apply."""
        path = tree / self.file
        if not path.is_file():
            raise ValueError(f"there is no {self.file}")
        text = path.read_text()
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"its text is in {self.file} {count} times")
        return text.replace(self.old, self.new)


def read_list(path):
    """Blocks: '= NAME', 'file FILE', 'suites A B', '<<<', the text, '---', its replacement, '>>>'."""
    mutants, fields, part = [], {}, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if part is not None:
            if part == "old" and line == "---":
                part = "new"
            elif part == "new" and line == ">>>":
                if missing := {"name", "file", "suites"} - fields.keys():
                    fail_list(f"{path}:{number}: {', '.join(sorted(missing))} missing")
                old, new = "\n".join(fields["old"]), "\n".join(fields["new"])
                mutants.append(Mutant(fields["name"], fields["file"], fields["suites"].split(), old, new))
                fields, part = {}, None
            else:
                fields[part].append(line)
        elif line == "<<<":
            fields["old"], fields["new"], part = [], [], "old"
        elif line.startswith("= "):
            fields = {"name": line[2:].strip()}
        elif line.split(" ", 1)[0] in ("file", "suites"):
            word, value = line.split(" ", 1)
            fields[word] = value.strip()
        elif line.strip() and not line.startswith("#"):
            fail_list(f"{path}:{number}: can't be read: {line}")
    names = [mutant.name for mutant in mutants]
    if part is not None or len(set(names)) != len(names):
        fail_list(f"{path}: a block has no end, or a name is there twice")
    return mutants


def refresh(tree):
    """Makes the copy what the working directory is; what is the same keeps its time, and is not built anew."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
    for name in filter(None, listed):
        source, target = ROOT / os.fsdecode(name), tree / os.fsdecode(name)
        if not source.is_file():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            shutil.copy(source, target)


def own_descendants():
    """All processes below this one; orphans come to it, as it has asked the kernel."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = pathlib.Path("/proc", entry, "stat").read_text(errors="replace")
            except OSError:
                continue
            parents[int(entry)] = int(text.rsplit(")", 1)[1].split()[1])
    found, work = [], [os.getpid()]
    while work:
        above = work.pop()
        below = [pid for pid, parent in parents.items() if parent == above]
        found += below
        work += below
    return found


def end_descendants():
    for _ in range(20):
        left = own_descendants()
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.1)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


def run(words, tree, limit, log):
    """The exit status; None if it did not end in time. What it leaves behind is ended."""
    with open(log, "wb") as output:
        process = subprocess.Popen(words, cwd=tree, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end_descendants()


def build(tree, options):
    return run(["swift", "build", "--build-tests"], tree, options.build_limit, tree / "build.log")


def test(suites, tree, options):
    # As in "VolumeTests.LockTableTests/interruptedWaiter()". A dot between letters is no end of a word to Swift.
    pattern = r"\.(" + "|".join(suites) + ")/"
    words = ["swift", "test", "--skip-build", "--filter", pattern]
    return run(words, tree, options.limit, tree / "test.log")


def ran_any(tree):
    return "Test run with 0 tests" not in (tree / "test.log").read_text(errors="replace")


def attempt(mutant, tree, options):
    """What became of one, and a word on it."""
    path = tree / mutant.file
    try:
        mutated = mutant.applied(tree)
    except ValueError as error:
        return BROKEN, str(error)
    whole = path.read_text()
    path.write_text(mutated)
    try:
        status = build(tree, options)
        if status != 0:
            return BROKEN, "it does not compile" if status else "it does not compile in time"
        status = test(mutant.suites, tree, options)
        if status == 0:
            return (NOT_FOUND, "") if ran_any(tree) else (BROKEN, "there are no such suites")
        return FOUND, "by its limit" if status is None else ""
    finally:
        path.write_text(whole)


def check_unchanged(chosen, tree, options):
    """The suites must pass as long as nothing is wrong, or what they find says nothing."""
    if build(tree, options) != 0:
        fail_list(f"the tree as it is does not build; see {tree}/build.log")
    for suite in sorted({suite for mutant in chosen for suite in mutant.suites}):
        if test([suite], tree, options) != 0:
            fail_list(f"{suite} fails without a fault; see {tree}/test.log")


def in_own_namespace(options):
    """Mounts that a stopped test leaves, and its files in /tmp, go with the namespace; root only."""
    if os.geteuid() != 0 or os.environ.get("INSULA_MUTANTS") == "inside":
        return
    environment = dict(os.environ, INSULA_MUTANTS="inside")
    os.execvpe("unshare", ["unshare", "--mount", sys.executable, *sys.argv], environment)


def arguments():
    parser = argparse.ArgumentParser(description="Puts small faults into a copy of the tree, one at a time, and runs tests.")
    parser.add_argument("names", nargs="*", help="names or patterns (default: all)")
    parser.add_argument("--list", action="store_true", help="say which there are")
    parser.add_argument("--check", action="store_true", help="only see whether each still applies")
    parser.add_argument("--tree", help="keep the copy here, so that the next run builds less")
    parser.add_argument("--no-baseline", action="store_true", help="don't run the suites without a fault first")
    parser.add_argument("--limit", type=int, default=900, help="seconds for the suites of one (default 900)")
    parser.add_argument("--build-limit", type=int, default=3600, help="seconds for one build (default 3600)")
    return parser.parse_args()


def choose(mutants, names):
    if not names:
        return mutants
    for name in names:
        if not any(fnmatch.fnmatchcase(mutant.name, name) for mutant in mutants):
            fail_list(f"there is no mutant '{name}'; --list says which there are")
    return [mutant for mutant in mutants if any(fnmatch.fnmatchcase(mutant.name, name) for name in names)]


def check(chosen):
    failures = 0
    for mutant in chosen:
        try:
            mutant.applied(ROOT)
        except ValueError as error:
            failures += 1
            print(f"{mutant.name}: {error}")
    print(f"{len(chosen) - failures} of {len(chosen)} apply.")
    return 2 if failures else 0


def main():
    options = arguments()
    chosen = choose(read_list(LIST), options.names)
    if options.list:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for mutant in chosen:
            print(f"{mutant.name}  {mutant.file}  {' '.join(mutant.suites)}")
        return 0
    if options.check:
        return check(chosen)
    in_own_namespace(options)
    # Corresponds to prctl(2) with PR_SET_CHILD_SUBREAPER: daemons that tests leave behind come to us.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    (ROOT / ".build").mkdir(exist_ok=True)
    tree = pathlib.Path(options.tree or tempfile.mkdtemp(prefix="mutants-", dir=ROOT / ".build")).resolve()
    tree.mkdir(parents=True, exist_ok=True)
    # Tests are ordinary users too.
    tree.chmod(0o755)
    # Not where it would hide the copy itself.
    if os.geteuid() == 0 and not tree.is_relative_to("/tmp") and not ROOT.is_relative_to("/tmp"):
        place = tree / ".tmp"
        place.mkdir(exist_ok=True)
        place.chmod(0o1777)
        subprocess.run(["mount", "--bind", place, "/tmp"], check=True)
    counts = {FOUND: 0, NOT_FOUND: 0, BROKEN: 0}
    try:
        refresh(tree)
        if not options.no_baseline:
            check_unchanged(chosen, tree, options)
        for mutant in chosen:
            began = time.monotonic()
            outcome, why = attempt(mutant, tree, options)
            counts[outcome] += 1
            seconds = int(time.monotonic() - began)
            print(f"{outcome:<14}  {mutant.name}{': ' + why if why else ''} ({seconds} s)", flush=True)
    finally:
        end_descendants()
        if not options.tree:
            shutil.rmtree(tree, ignore_errors=True)
    print(", ".join(f"{count} {outcome.lower()}" for outcome, count in counts.items()))
    return 2 if counts[BROKEN] else 1 if counts[NOT_FOUND] else 0


if __name__ == "__main__":
    sys.exit(main())
