#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""One user takes as much as they can of one thing while another works; how much slower does the other become?

Each abuse runs on a plain ext4 directory and on a mounted store that lies on the same filesystem. Everything lies on an
image in memory; it is gone when this program ends, and so are the two accounts that it makes.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
KINDS = ["directories", "descriptors", "copies", "synchronizations", "truncations", "locks", "parked", "names",
         "listings", "closings", "strangers", "requests", "views", "grants"]
# These ask something of the daemon that a plain directory does not have.
DAEMON_ONLY = {"views", "grants"}
SLOW_TO_BEGIN = {"views", "grants"}
APP = "org.example.neighbour"
INTERRUPTED = 130


def say(*words):
    print("neighbours:", *words, file=sys.stderr, flush=True)


def run(*command, user=None, check=True, timeout=120, **options):
    if user:
        command = ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "env", f"HOME=/tmp") + command
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout, **options)
    if check and result.returncode != 0:
        raise SystemExit(f"neighbours: {' '.join(map(str, command))}: {result.stderr or result.stdout}")
    return result


def percentile(times, share):
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class Fixture:
    """The image, the store on it, the mount, the app and the two accounts."""

    def __init__(self, insula):
        self.insula = insula
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="insula-neighbours.", dir="/run"))
        self.base.chmod(0o755)
        suffix = str(os.getpid())
        self.victim, self.abuser = f"victim{suffix}", f"abuser{suffix}"
        self.store, self.mount = self.base / "disk/store", self.base / "mnt"
        self.program = self.base / "neighbour"
        self.server = None

    def __enter__(self):
        try:
            self.prepare()
        except BaseException:
            self.__exit__()
            raise
        return self

    def prepare(self):
        run("mount", "-t", "tmpfs", "-o", "size=9g,mode=0755", "neighbours", self.base)
        for name in ("disk", "mnt"):
            (self.base / name).mkdir()
        run("truncate", "-s", "8G", self.base / "image")
        run("mkfs.ext4", "-q", "-F", "-i", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.base / "image")
        run("mount", "-o", "loop,noatime", self.base / "image", self.base / "disk")
        run("cc", "-O2", "-Wall", "-o", self.program, *HERE.glob("*.c"), "-lpthread")
        shutil.copy(self.insula, self.base / "insula")
        self.insula = self.base / "insula"
        for name in (self.victim, self.abuser):
            run("useradd", "--no-create-home", "--shell", "/bin/sh", name)
        self.sockets = self.listening()
        self.make_store()

    def __exit__(self, *_):
        os.chdir("/")
        if self.server:
            self.server.kill()
            self.server.wait()
        for name in (self.victim, self.abuser):
            run("pkill", "-KILL", "-u", name, check=False)
        time.sleep(0.5)
        run(self.insula, "unmount", self.mount, check=False)
        for place in (self.mount, self.base / "disk", self.base):
            if run("umount", place, check=False).returncode != 0:
                run("umount", "-l", place, check=False)
        for name in (self.victim, self.abuser):
            run("userdel", "--force", name, check=False)
        self.base.rmdir()

    def listening(self):
        """The paths of all local sockets on which somebody listens."""
        lines = pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]
        return {words[7] for words in map(str.split, lines) if len(words) > 7 and int(words[3], 16) & 0x10000}

    def make_store(self):
        os.environ["XDG_CONFIG_HOME"] = str(self.base / "configuration")
        insula, bundle = self.insula, self.base / "Neighbour.app"
        run(insula, "init", self.store)
        run(insula, "new-app", "Neighbour", self.base)
        # What the victim grants needs an app that asks for it.
        run(insula, "identity", "new", "Neighbour")
        run(insula, "identity", "export", "Neighbour", "--certificate", self.base / "root.pem")
        run(insula, "trust", "add", self.base / "root.pem")
        run(insula, "sign", bundle)
        run(insula, "trust", "add", self.base / "root.pem", "--store", self.store)
        for name in (self.victim, self.abuser):
            run(insula, "user", "add", name, "--store", self.store)
        run(insula, "install", bundle, "--store", self.store)
        run(insula, "mount", self.store, self.mount)
        self.socket = next(iter(sorted(self.listening() - self.sockets)), None)
        if not self.socket:
            raise SystemExit("neighbours: the daemon listens nowhere")
        self.pid = self.status()["pid"]
        self.plain_socket = self.base / "plain.socket"
        self.server = subprocess.Popen([self.program, "serve", self.plain_socket])

    def status(self):
        return json.loads(run(self.insula, "status", "--json", self.store).stdout)

    def place(self, medium, name):
        """A private directory of one of the two."""
        path = self.base / "disk/plain" / name if medium == "ext4" else self.mount / "Users" / name / "Documents"
        if medium == "ext4":
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o700)
            shutil.chown(path, name, name)
        work = path / "work"
        run("mkdir", "-p", work, user=name)
        return work

    def clear(self, medium, name):
        """Removes what one of the two has left: the next abuse finds the disk as this one did."""
        work = self.place(medium, name)
        run("find", work, "-mindepth", "1", "-maxdepth", "1", "-exec", "rm", "-rf", "{}", "+", user=name, check=False)
        run("sync", "-f", self.base / "disk")

    def held(self):
        """What the daemon holds for its users. Its cache of descriptors has a limit of its own and is not among this."""
        counts = self.status()
        return {name: counts[name] for name in ("openDirectories", "openFiles", "locks", "views")}


class Starts(threading.Thread):
    """Starts a program again and again, and keeps how long each start took."""

    def __init__(self, name, command, user, pause):
        super().__init__()
        self.name, self.pause = name, pause
        self.command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "env", "HOME=/tmp"] + [
            str(word) for word in command]
        self.times, self.refused, self.error, self.over = [], 0, "-", threading.Event()

    def run(self):
        while not self.over.is_set():
            begin = time.monotonic()
            try:
                result = subprocess.run(self.command, capture_output=True, text=True, timeout=120)
                failed, words = result.returncode != 0, result.stderr.strip()
            except subprocess.TimeoutExpired:
                failed, words = True, "no end after 120 s"
            self.times.append((time.monotonic() - begin) * 1e6)
            if failed:
                self.refused, self.error = self.refused + 1, words[-160:]
            self.over.wait(self.pause)


class Row:
    def __init__(self, count, refused, median, high, error):
        self.count, self.refused, self.median, self.high, self.error = count, refused, median, high, error

    @property
    def share(self):
        """Of what was tried, how much was refused."""
        return self.refused / max(self.count, 1)

    def refusals(self, plain):
        words = f"{self.refused} of {self.count}" + (f": {self.error}" if self.refused else "")
        return words + (f" (ext4: {plain.refused} of {plain.count}: {plain.error})" if plain.refused else "")

    def __str__(self):
        return f"{self.median:.0f} / {self.high:.0f}"


def measure(fixture, medium, seconds):
    """What the victim's operations take now: a row for each."""
    work = fixture.place(medium, fixture.victim)
    if medium == "ext4":
        # The nearest that there is without a daemon: the same sandbox, and the same program's start.
        launch = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
        status = [fixture.insula, "version"]
    else:
        launch = [fixture.insula, "run", "--store", fixture.store, APP, "--", "true"]
        status = [fixture.insula, "status", fixture.store]
    starts = [Starts("launch", launch, fixture.victim, 0.2), Starts("status", status, fixture.victim, 0.2)]
    for start in starts:
        start.start()
    try:
        result = run(fixture.program, "victim", work, seconds, user=fixture.victim, timeout=seconds * 10 + 120)
    finally:
        for start in starts:
            start.over.set()
        for start in starts:
            start.join()
    rows = {}
    for line in result.stdout.splitlines():
        name, count, refused, median, high, error = line.split()
        rows[name] = Row(int(count), int(refused), float(median), float(high), error)
    for start in starts:
        rows[start.name] = Row(
            len(start.times), start.refused, percentile(start.times, 0.5), percentile(start.times, 0.99), start.error)
    return rows


def begin_views(fixture, seconds):
    script = f"""
      end=$(($(date +%s) + {seconds}))
      while [ "$(date +%s)" -lt "$end" ]; do
        [ "$(jobs -r | wc -l)" -lt 600 ] || {{ sleep 0.1; continue; }}
        {fixture.insula} run --store {fixture.store} {APP} -- sleep 1000 >/dev/null 2>&1 &
      done"""
    return ["bash", "-c", script]


def begin_grants(fixture, work):
    script = f"""
      cd {work} && top=$PWD && deep=top
      for level in $(seq 60); do deep=$deep/level; done
      mkdir -p "$deep" && cd "$deep"
      for number in $(seq 400); do : >file-$number; done
      {fixture.insula} grant --store {fixture.store} {APP} $PWD/file-* >/dev/null || exit 1
      cd "$top" && : >ready
      while mv top next && mv next top; do :; done"""
    return ["bash", "-c", script]


def settle(fixture, kind, abuse, patience=90):
    """Waits until an abuse has taken what it can, as a rule."""
    seen, still, over = -1, 0, time.monotonic() + patience
    ready = fixture.place("insula", fixture.abuser) / "ready"
    time.sleep(3)
    while kind in SLOW_TO_BEGIN and time.monotonic() < over and abuse.poll() is None:
        if kind == "grants" and ready.exists():
            return
        if kind == "views":
            views = fixture.status()["views"]
            seen, still = views, still + 1 if views == seen else 0
            if still == 4:
                return
        time.sleep(0.5)
    if kind in SLOW_TO_BEGIN:
        raise SystemExit(f"neighbours: {kind}: it had not begun after {patience} s")


def begin(fixture, medium, kind, seconds):
    """Starts an abuse as the other user."""
    work = fixture.place(medium, fixture.abuser)
    if kind == "views":
        command = begin_views(fixture, seconds)
    elif kind == "grants":
        command = begin_grants(fixture, work)
    else:
        socket = fixture.socket if medium == "insula" else fixture.plain_socket
        other = {"requests": socket, "strangers": fixture.place(medium, fixture.victim)}.get(kind, "-")
        command = [fixture.program, "abuse", kind, work, other, seconds]
    words = ["setpriv", f"--reuid={fixture.abuser}", f"--regid={fixture.abuser}", "--init-groups", "env", "HOME=/tmp"]
    return subprocess.Popen(words + [str(word) for word in command], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, start_new_session=True)


def stop(fixture, abuse):
    try:
        os.killpg(abuse.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    run("pkill", "-KILL", "-u", fixture.abuser, check=False)
    abuse.wait()


def given_back(fixture, before, patience=20):
    """Whether the daemon has let go of what the abuse made it hold; what it still has if not."""
    left = {}
    for _ in range(patience * 2):
        left = {name: count - before[name] for name, count in fixture.held().items() if count > before[name]}
        if not left:
            return "yes"
        time.sleep(0.5)
    return "left: " + ", ".join(f"{count} {name}" for name, count in left.items())


def allowed(alone, plain):
    """Which median and 99th percentile the victim may have."""
    return max(3 * alone.median, 2 * plain.median), max(10 * alone.high, 2 * plain.high)


def table(results, facts):
    lines = ["# Neighbours", "", *facts, "",
             "One user takes as much as they can of one thing while another works. Microseconds: median / 99th percentile.",
             "*Allowed* is the larger of 3 times (99th percentile: 10 times) what the victim has alone, and twice what the",
             "plain ext4 directory shows under the same abuse; *ratio* is what Insula shows, of that. Of a plain directory,",
             "*launch* is bubblewrap alone and *status* the start of the program. *requests* go to a plain local server there;",
             "views and grants, which it has none of, are compared with ext4 that nobody abuses. Nothing may be refused that",
             "ext4 would not refuse as well.", "",
             "| abuse | operation | alone | ext4 under abuse | Insula under abuse | allowed | ratio | refused | kept |",
             "|---|---|---|---|---|---|---|---|---|"]
    kept = True
    for kind, name, alone, now, plain in results["rows"]:
        median, high = allowed(alone, plain)
        holds = now.median <= median and now.high <= high and now.share <= plain.share
        kept = kept and holds
        lines.append(f"| {kind} | {name} | {alone} | {plain} | {now} | {median:.0f} / {high:.0f} | "
                     f"{now.median / median:.2f} / {now.high / high:.2f} | {now.refusals(plain)} | "
                     f"{'yes' if holds else '**no**'} |")
    lines += ["", "| abuse | everything given back |", "|---|---|"]
    for kind, left in results["back"].items():
        kept = kept and left == "yes"
        lines.append(f"| {kind} | {left} |")
    return "\n".join(lines) + "\n", kept


def facts(arguments):
    commit = run("git", "-C", REPOSITORY, "rev-parse", "--short", "HEAD", check=False).stdout.strip() or "unknown"
    return [f"- Date: {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}", f"- Commit: {commit}",
            f"- Kernel: {os.uname().release}, {os.cpu_count()} CPUs",
            f"- {arguments.seconds} s for each abuse; ext4 image in memory"]


def expose(fixture, kind, seconds):
    """What the victim's operations take under an abuse, and whether all is given back."""
    rows, left = {}, ""
    for medium in ("insula",) if kind in DAEMON_ONLY else ("ext4", "insula"):
        say(kind, "on", medium)
        before = fixture.held()
        # For longer than can be needed; it is stopped.
        abuse = begin(fixture, medium, kind, seconds * 4 + 300)
        try:
            settle(fixture, kind, abuse)
            rows[medium] = measure(fixture, medium, seconds)
            if abuse.poll() is not None:
                raise SystemExit(f"neighbours: {kind}: the abuser gave up on {medium}")
        finally:
            stop(fixture, abuse)
            left = given_back(fixture, before)
            fixture.clear(medium, fixture.abuser)
    return rows, left


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=20, help="for each abuse (default 20)")
    parser.add_argument("--only", default=",".join(KINDS), help="these kinds, with commas between them: %(default)s")
    parser.add_argument("--save", action="store_true", help="write Benchmarks/results/neighbours.md")
    arguments = parser.parse_args()
    insula = os.environ.get("INSULA", REPOSITORY / ".build/release/insula")
    if os.geteuid() != 0:
        raise SystemExit("neighbours: this needs root, for mounts and for two accounts")
    if not os.access(insula, os.X_OK):
        raise SystemExit(f"neighbours: there is no {insula}; run 'make build', or set INSULA")
    kinds = arguments.only.split(",")
    unknown = set(kinds) - set(KINDS)
    if unknown:
        raise SystemExit(f"neighbours: there is no abuse called {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(INTERRUPTED))
    results = {"rows": [], "back": {}}
    with Fixture(insula) as fixture:
        alone = {medium: measure(fixture, medium, max(5, arguments.seconds // 2)) for medium in ("ext4", "insula")}
        for kind in kinds:
            try:
                rows, left = expose(fixture, kind, arguments.seconds)
            except (SystemExit, subprocess.SubprocessError, OSError) as error:
                if isinstance(error, SystemExit) and error.code == INTERRUPTED:
                    raise
                results["back"][kind] = f"not measured: {str(error).splitlines()[0][-160:]}"
                continue
            for name, now in rows["insula"].items():
                results["rows"].append((kind, name, alone["insula"][name], now, rows.get("ext4", alone["ext4"])[name]))
            results["back"][kind] = left
    text, kept = table(results, facts(arguments))
    print(text)
    if arguments.save:
        (REPOSITORY / "Benchmarks/results/neighbours.md").write_text(text)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
