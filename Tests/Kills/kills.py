#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Kills the process that serves, again and again, under what programs do. No program may notice.

usage: INSULA=path/to/insula kills.py [--kills N] [--signal KILL] [--twice] [--scratch DIR] [LOAD...]

Run it as root for a system store, and as another user for a store of one's own. Each load runs until so many
kills have happened, and at least once; whatever a program reports as an error is a failure.
"""
import argparse, hashlib, os, pwd, random, shutil, signal, sqlite3, subprocess, sys, tempfile, threading, time

INSULA = os.environ.get("INSULA", "insula")


def run(*words, cwd=None, timeout=300, **options):
    done = subprocess.run(words, cwd=cwd, timeout=timeout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode:
        raise Failure(f"{' '.join(words)[:200]}: status {done.returncode}\n{done.stdout.decode(errors='replace')[-2000:]}")
    return done.stdout.decode(errors="replace")


class Failure(Exception):
    pass


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


class Mount:
    def __init__(self, scratch, options):
        self.scratch = scratch
        self.store = f"{scratch}/store"
        self.point = f"{scratch}/mnt"
        os.makedirs(self.point)
        run(INSULA, "init", self.store)
        words = [word for option in ["restarts=1000000"] + options for word in ("-o", option)]
        self.process = subprocess.Popen([INSULA, "mount", "--foreground", self.store, self.point] + words,
                                        stdout=open(f"{scratch}/log", "ab"), stderr=subprocess.STDOUT)
        end = time.monotonic() + 20
        while not os.path.ismount(self.point):
            if time.monotonic() > end or self.process.poll() is not None:
                raise Failure("it did not mount: " + open(f"{scratch}/log").read())
            time.sleep(0.02)
        time.sleep(0.3)
        self.place = f"{self.point}/Users/Shared/kills"
        if os.getuid():
            self.place = f"{self.point}/kills" if os.access(self.point, os.W_OK) else self.place
        os.makedirs(self.place, exist_ok=True)

    def worker(self):
        found = [pid for pid in children(self.process.pid) if self.is_worker(pid)]
        return found[0] if found else None

    def is_worker(self, pid):
        try:
            with open(f"/proc/{pid}/comm") as file:
                return file.read().strip() != "insula-unmount"
        except OSError:
            return False

    def end(self):
        subprocess.run([INSULA, "unmount", self.point], timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            for pid in children(self.process.pid):
                os.kill(pid, signal.SIGKILL)
            self.process.kill()
            subprocess.run(["umount", "-l", self.point])


class Killer(threading.Thread):
    """Kills the worker at random moments, a number of times."""

    def __init__(self, mount, kills, number, twice):
        super().__init__(daemon=True)
        self.mount, self.left, self.number, self.twice = mount, kills, number, twice
        self.pauses = []
        self.failure = None
        self.stop = False

    def run(self):
        while self.left and not self.stop:
            time.sleep(random.uniform(0.02, 0.4))
            try:
                self.kill()
                if self.twice:
                    self.kill(random.uniform(0, 0.02))
            except (OSError, Failure) as failure:
                self.failure = failure
                return
            self.left -= 1

    def kill(self, delay=0.0):
        end = time.monotonic() + 10
        while (worker := self.mount.worker()) is None:
            if time.monotonic() > end or self.mount.process.poll() is not None:
                raise Failure("there is no worker any more")
        time.sleep(delay)
        os.kill(worker, self.number)
        began = time.monotonic()
        # Swift's runtime catches the first signal of a crash, and only a real one comes again by itself.
        while self.mount.worker() == worker:
            if time.monotonic() > began + 10:
                raise Failure("the worker is still there")
            time.sleep(0.0005)
            if self.number != signal.SIGKILL and self.mount.worker() == worker:
                os.kill(worker, self.number)
        # Any answer of the new one ends the pause: what the kernel knows it would answer itself.
        try:
            os.stat(f"{self.mount.place}/nothing-{random.getrandbits(60):x}")
        except FileNotFoundError:
            pass
        self.pauses.append(time.monotonic() - began)


def tree_digest(path):
    digest = hashlib.sha256()
    for base, names, files in os.walk(path):
        names.sort()
        for name in sorted(files):
            full = os.path.join(base, name)
            digest.update(os.path.relpath(full, path).encode() + b"\0")
            if os.path.islink(full):
                digest.update(os.readlink(full).encode())
            else:
                with open(full, "rb") as file:
                    digest.update(file.read())
    return digest.hexdigest()


class Loads:
    def __init__(self, mount, scratch):
        self.mount, self.scratch, self.place = mount, scratch, mount.place
        self.round = 0

    def fresh(self, name):
        self.round += 1
        path = f"{self.place}/{name}-{self.round}"
        os.makedirs(path)
        return path

    def source(self, files):
        path = f"{self.scratch}/source-{files}"
        if not os.path.exists(path):
            for index in range(files):
                directory = f"{path}/{index % 40:02}/{index % 7}"
                os.makedirs(directory, exist_ok=True)
                with open(f"{directory}/file {index}", "wb") as file:
                    file.write(random.randbytes(random.choice([0, 10, 900, 5000, 20000])))
                if index % 50 == 0:
                    os.symlink(f"file {index}", f"{directory}/link {index}")
                    os.link(f"{directory}/file {index}", f"{directory}/hard {index}")
        return path

    def git(self):
        origin = f"{self.scratch}/origin"
        if not os.path.exists(origin):
            shutil.copytree(self.source(3000), origin, symlinks=True)
            run("git", "init", "-q", ".", cwd=origin)
            run("git", "add", "-A", cwd=origin)
            run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all", cwd=origin)
        path = self.fresh("git")
        run("git", "-c", "safe.directory=*", "clone", "-q", "--no-local", origin, "clone", cwd=path)
        run("git", "fsck", "--full", cwd=f"{path}/clone")
        if run("git", "status", "--porcelain", cwd=f"{path}/clone").strip():
            raise Failure("the clone differs from what was cloned")
        shutil.rmtree(path)

    def tar(self, files=20000):
        archive = f"{self.scratch}/archive-{files}.tar"
        source = self.source(files)
        if not os.path.exists(archive):
            run("tar", "cf", archive, "-C", source, ".")
        path = self.fresh("tar")
        run("tar", "xf", archive, "-C", path)
        if tree_digest(path) != tree_digest(source):
            raise Failure("what was unpacked differs")
        run("rm", "-r", path)

    def fio(self):
        path = self.fresh("fio")
        run("fio", "--name=v", f"--directory={path}", "--rw=randrw", "--size=24m", "--bs=4k", "--numjobs=2",
            "--verify=crc32c", "--verify_fatal=1", "--do_verify=1", "--ioengine=psync", "--fsync=64",
            "--time_based", "--runtime=15", "--minimal", cwd=self.scratch)
        shutil.rmtree(path)

    def sqlite(self, mode):
        path = self.fresh(f"sqlite-{mode}")
        database = sqlite3.connect(f"{path}/db", timeout=60)
        database.execute(f"pragma journal_mode={mode}")
        database.execute("pragma synchronous=full")
        database.execute("create table t (n integer primary key, text)")
        database.commit()
        end = time.monotonic() + 10
        count = 0
        while time.monotonic() < end:
            for _ in range(20):
                database.execute("insert into t values (?, ?)", (count, "x" * random.randint(1, 3000)))
                count += 1
            database.commit()
        database.close()
        database = sqlite3.connect(f"{path}/db", timeout=60)
        if database.execute("pragma integrity_check").fetchone()[0] != "ok":
            raise Failure("the database is damaged")
        if database.execute("select count(*) from t").fetchone()[0] != count:
            raise Failure("rows were lost")
        database.close()
        shutil.rmtree(path)

    def wal(self):
        self.sqlite("wal")

    def rollback(self):
        self.sqlite("delete")

    def storm(self):
        """Names made, changed and removed, compared with what should be there."""
        path = self.fresh("storm")
        failures = []

        def client(number):
            try:
                self.storm_client(f"{path}/{number}", random.Random(random.getrandbits(64)))
            except Exception as failure:
                failures.append(f"{type(failure).__name__}: {failure} at {time.time():.4f}\n"
                                + run("ls", "-la", "--time-style=full-iso", f"{path}/{number}"))

        threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise Failure("; ".join(failures))
        shutil.rmtree(path)

    def storm_client(self, path, chance):
        os.mkdir(path)
        model = {}
        end = time.monotonic() + 8
        step = 0
        while time.monotonic() < end:
            step += 1
            name = f"n{chance.randrange(60)}"
            full = f"{path}/{name}"
            act = chance.randrange(9)
            if name not in model and act < 4:
                if act == 0:
                    with open(full, "x") as file:
                        file.write(str(step))
                    model[name] = str(step)
                elif act == 1:
                    os.mkdir(full)
                    model[name] = None
                elif act == 2:
                    os.symlink(str(step), full)
                    model[name] = ("link", str(step))
                else:
                    others = [other for other, what in model.items() if isinstance(what, str)]
                    if others:
                        other = chance.choice(others)
                        os.link(f"{path}/{other}", full)
                        model[name] = model[other]
                        # Both are the same file from now on, and neither is written to again.
            elif name in model and act < 6:
                if model[name] is None:
                    os.rmdir(full)
                else:
                    os.unlink(full)
                del model[name]
            elif name in model and act < 8:
                new = f"m{chance.randrange(60)}"
                if new not in model:
                    os.rename(full, f"{path}/{new}")
                    model[new] = model.pop(name)
            elif name in model and isinstance(model[name], str):
                attribute = f"user.a{step}"
                os.setxattr(full, attribute, b"1", os.XATTR_CREATE)
                os.removexattr(full, attribute)
        if set(os.listdir(path)) != set(model):
            raise Failure(f"names differ: {set(os.listdir(path)) ^ set(model)}")
        for name, what in model.items():
            full = f"{path}/{name}"
            if isinstance(what, str):
                if open(full).read() != what:
                    raise Failure(f"{name} is {open(full).read()!r} instead of {what!r}")
            elif what is None:
                if not os.path.isdir(full):
                    raise Failure(f"{name} is no directory")
            elif os.readlink(full) != what[1]:
                raise Failure(f"{name} leads elsewhere")

    def locks(self):
        """Several processes count in one file, under byte-range locks and under flock."""
        path = self.fresh("locks")
        for kind in ("posix", "flock"):
            with open(f"{path}/{kind}", "w") as file:
                file.write("0")
        code = """
import fcntl, sys, time, os
path, kind, end = sys.argv[1], sys.argv[2], time.monotonic() + 8
count = 0
fd = os.open(path, os.O_RDWR)
while time.monotonic() < end:
    if kind == "posix": fcntl.lockf(fd, fcntl.LOCK_EX, 10, 0)
    else: fcntl.flock(fd, fcntl.LOCK_EX)
    value = int(os.pread(fd, 20, 0)) + 1
    os.pwrite(fd, str(value).encode(), 0)
    count += 1
    if kind == "posix": fcntl.lockf(fd, fcntl.LOCK_UN, 10, 0)
    else: fcntl.flock(fd, fcntl.LOCK_UN)
print(count)
"""
        clients = [(kind, subprocess.Popen([sys.executable, "-c", code, f"{path}/{kind}", kind],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
                   for kind in ("posix", "flock") for _ in range(3)]
        counts = {"posix": 0, "flock": 0}
        for kind, client in clients:
            out, errors = client.communicate(timeout=120)
            if client.returncode:
                raise Failure(errors)
            counts[kind] += int(out)
        for kind, count in counts.items():
            found = int(open(f"{path}/{kind}").read())
            if found != count:
                raise Failure(f"{kind}: {found} instead of {count}")
        shutil.rmtree(path)

    def rsync(self):
        source = self.source(3000)
        path = self.fresh("rsync")
        run("rsync", "-aHAX", f"{source}/", f"{path}/copy/")
        # Whatever differs it would name.
        different = run("rsync", "-aHAXnic", "--delete", f"{source}/", f"{path}/copy/")
        if different.strip():
            raise Failure("the copy differs:\n" + different[:1000])
        run("rm", "-r", path)

    def unlinked(self):
        """A file without a name, and a working directory without one."""
        path = self.fresh("unlinked")
        with open(f"{path}/file", "w+") as file:
            os.unlink(f"{path}/file")
            end = time.monotonic() + 8
            text = ""
            while time.monotonic() < end:
                file.write("more ")
                file.flush()
                text += "more "
                file.seek(0)
                if file.read() != text:
                    raise Failure("the file without a name has lost something")
                if os.fstat(file.fileno()).st_nlink != 0:
                    raise Failure("the file without a name has one")
                time.sleep(0.01)
        shutil.rmtree(path)

    def append(self):
        """Lines that several processes append to one file."""
        path = self.fresh("append")
        code = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
end = time.monotonic() + 8
count = 0
while time.monotonic() < end:
    os.write(fd, f"{sys.argv[2]} {count:08} {'x' * 80}\\n".encode())
    count += 1
print(count)
"""
        clients = [subprocess.Popen([sys.executable, "-c", code, f"{path}/file", str(number)],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for number in range(3)]
        counts = []
        for client in clients:
            out, errors = client.communicate(timeout=120)
            if client.returncode:
                raise Failure(errors)
            counts.append(int(out))
        next_lines = [0] * len(clients)
        for line in open(f"{path}/file"):
            number, count, rest = line.split()
            if int(count) != next_lines[int(number)] or len(rest) != 80:
                raise Failure(f"line {line!r} where {next_lines[int(number)]} should be")
            next_lines[int(number)] += 1
        if next_lines != counts:
            raise Failure(f"{next_lines} lines instead of {counts}")
        shutil.rmtree(path)


    def app(self):
        """An app that works in its container, and is told the truth about its end."""
        user = self.user()
        script = """
            n=0; end=$(($(date +%s) + 8)); mkdir -p Documents/made
            while [ $(date +%s) -lt $end ]; do
              n=$((n + 1)); echo $n > Documents/made/$n || exit 1
              [ "$(cat Documents/made/$n)" = $n ] || exit 2
              mv Documents/made/$n Documents/last || exit 3
              echo line >> Documents/log || exit 4
              ls Documents/made > /dev/null || exit 5
              mkdir Library/Caches/d && rmdir Library/Caches/d || exit 6
            done
            [ $(wc -l < Documents/log) = $n ] || exit 8
            rm Documents/log; exit 7"""
        if os.getuid() == 0:
            words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        else:
            words = []
        done = subprocess.run(words + [INSULA, "run", "--store", self.mount.point, "org.example.kills", "--", "sh", "-c", script],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, cwd="/")
        if done.returncode != 7:
            raise Failure(f"the app ended with {done.returncode}: {done.stdout.decode(errors='replace')}")

    def user(self):
        """The user who runs the app, which is made first."""
        name = "insula-kills" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
        if not hasattr(self, "installed"):
            if os.getuid() == 0 and subprocess.run(["id", name], capture_output=True).returncode:
                run("useradd", "--no-create-home", name)
            run(INSULA, "identity", "new", "kills", "--team", "ABCDE12345", cwd=self.scratch, env=self.environment())
            run(INSULA, "identity", "export", "kills", "--certificate", f"{self.scratch}/root.pem", env=self.environment())
            run(INSULA, "trust", "add", f"{self.scratch}/root.pem", "--store", self.mount.store)
            run(INSULA, "user", "add", name, "--store", self.mount.store)
            os.makedirs(f"{self.scratch}/apps")
            run(INSULA, "new-app", "Kills", f"{self.scratch}/apps")
            bundle = f"{self.scratch}/apps/Kills.app"
            run(INSULA, "sign", bundle, "--identity", "kills", env=self.environment())
            run(INSULA, "install", bundle, "--store", self.mount.store)
            self.installed = True
        return name

    def environment(self):
        return dict(os.environ, HOME=self.scratch, XDG_CONFIG_HOME=f"{self.scratch}/config")


ALL = ["git", "tar", "fio", "wal", "rollback", "storm", "locks", "rsync", "unlinked", "append", "app"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--signal", default="KILL")
    parser.add_argument("--twice", action="store_true", help="kill the replacement while it takes over, too")
    parser.add_argument("--scratch", default=None)
    parser.add_argument("-o", action="append", default=[], help="an option of the mount")
    parser.add_argument("loads", nargs="*", default=[])
    arguments = parser.parse_args()
    number = getattr(signal, "SIG" + arguments.signal)
    failed = False
    for name in arguments.loads or ALL:
        scratch = tempfile.mkdtemp(prefix="insula-kills-", dir=arguments.scratch)
        os.chmod(scratch, 0o755)
        mount = Mount(scratch, arguments.o)
        killer = Killer(mount, arguments.kills, number, arguments.twice)
        loads = Loads(mount, scratch)
        rounds = 0
        message = None
        try:
            getattr(loads, "source")(3000)
            killer.start()
            while killer.is_alive() or rounds == 0:
                getattr(loads, name)()
                rounds += 1
            if killer.failure:
                message = f"killer: {killer.failure}"
        except Exception as failure:
            message = f"{type(failure).__name__}: {failure}"
        killer.stop = True
        killer.join(30)
        pauses = sorted(killer.pauses)
        text = ""
        if pauses:
            text = f"pause {pauses[len(pauses) // 2] * 1000:.0f} ms median, {pauses[-1] * 1000:.0f} ms at most"
        print(f"{name}: {'FAILED' if message else 'ok'}; {len(pauses)} kills, {rounds} rounds, {text}", flush=True)
        if message:
            failed = True
            print(message, flush=True)
            print(open(f"{scratch}/log").read()[-1500:], flush=True)
        try:
            mount.end()
        finally:
            if not message:
                shutil.rmtree(scratch, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
