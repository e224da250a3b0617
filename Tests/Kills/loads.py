# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""What programs do while the process that serves is killed.

Each load compares what it finds with what should be there. `prepare_NAME`, if there is one, is called before
anything is killed.
"""
import hashlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

from apps import AppLoad
from installs import InstallLoad
from mount import INSULA, Failure, run


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


class Loads(AppLoad, InstallLoad):
    def __init__(self, mount, scratch, files=10_000, share=1):
        self.mount, self.scratch, self.place = mount, scratch, mount.place
        self.files, self.share = files, share
        self.round = 0

    def prepare(self, name):
        getattr(self, f"prepare_{name}", lambda: None)()

    def fresh(self, name):
        self.round += 1
        path = f"{self.place}/{name}-{self.round}"
        os.makedirs(path)
        return path

    def source(self, files):
        files = int(files * self.share)
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

    def prepare_git(self):
        origin = f"{self.scratch}/origin"
        shutil.copytree(self.source(3000), origin, symlinks=True)
        run("git", "init", "-q", ".", cwd=origin)
        run("git", "add", "-A", cwd=origin)
        run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all", cwd=origin)

    def git(self):
        path = self.fresh("git")
        run("git", "-c", "safe.directory=*", "clone", "-q", "--no-local", f"{self.scratch}/origin", "clone",
            cwd=path)
        run("git", "fsck", "--full", cwd=f"{path}/clone")
        if run("git", "status", "--porcelain", cwd=f"{path}/clone").strip():
            raise Failure("the clone differs from what was cloned")
        shutil.rmtree(path)

    def prepare_tar(self):
        run("tar", "cf", f"{self.scratch}/archive.tar", "-C", self.source(20_000), ".")

    def tar(self):
        path = self.fresh("tar")
        run("tar", "xf", f"{self.scratch}/archive.tar", "-C", path)
        if tree_digest(path) != tree_digest(self.source(20_000)):
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

    def prepare_rsync(self):
        self.source(3000)

    def rsync(self):
        source = self.source(3000)
        path = self.fresh("rsync")
        run("rsync", "-aHAX", f"{source}/", f"{path}/copy/")
        # Whatever differs it would name.
        different = run("rsync", "-aHAXnic", "--delete", f"{source}/", f"{path}/copy/")
        if different.strip():
            raise Failure("the copy differs:\n" + different[:1000])
        run("rm", "-r", path)

    def prepare_backup(self):
        shutil.copytree(self.source(3000), f"{self.place}/saved", symlinks=True)

    def backup(self):
        """A program in the view for backups."""
        copy = f"{self.scratch}/copy"
        place = f"{self.place}/saved"
        for _ in range(20):
            shutil.rmtree(copy, ignore_errors=True)
            done = subprocess.run(
                [INSULA, "backup", "run", "--store", self.mount.point, "--", "cp", "-a", place, copy],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, text=True)
            # A command whose daemon dies says so, and fails; what runs in a view goes on.
            if not done.stdout.startswith("insula:"):
                break
        if done.returncode:
            raise Failure(f"the backup failed: {done.stdout[:1000]}")
        if tree_digest(copy) != tree_digest(place):
            raise Failure("the backup differs from what was saved")

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
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                   for number in range(3)]
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

    def fsync(self):
        """Files that are on the disk, by what fsync has said, and have names there."""
        path = self.fresh("fsync")
        clients, each = 4, self.files // 4
        code = """
import os, sys
path, number, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for index in range(count):
    directory = f"{path}/{number}-{index // 1000}"
    if index % 1000 == 0: os.mkdir(directory)
    fd = os.open(f"{directory}/{index}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(fd, f"{number} {index} ".encode() * (1 + index * 37 % 500))
    os.fsync(fd)
    os.close(fd)
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)
    print(index, flush=True)
"""
        with tempfile.TemporaryDirectory(dir=self.scratch) as notes:
            processes = []
            for number in range(clients):
                with open(f"{notes}/{number}", "w") as note:
                    words = [sys.executable, "-c", code, path, str(number), str(each)]
                    processes.append(subprocess.Popen(words, stdout=note, stderr=subprocess.PIPE, text=True))
            for process in processes:
                errors = process.communicate(timeout=3600)[1]
                if process.returncode:
                    raise Failure(errors)
            for number in range(clients):
                with open(f"{notes}/{number}") as note:
                    told = [int(line) for line in note]
                if told != list(range(each)):
                    raise Failure(f"{len(told)} files were acknowledged instead of {each}")
                for index in told:
                    name = f"{number}-{index // 1000}/{index}"
                    self.compare(f"{path}/{name}", f"{number} {index} ".encode() * (1 + index * 37 % 500))
        run("rm", "-r", path, timeout=1200)

    def compare(self, path, expected):
        """Compares a file, as it is in the mount and as it is in the store."""
        for place in (path, path.replace(self.mount.point, f"{self.mount.store}/tree", 1)):
            with open(place, "rb") as file:
                if file.read() != expected:
                    raise Failure(f"{place} has lost something")


ALL = ["git", "tar", "fio", "wal", "rollback", "storm", "locks", "rsync", "unlinked", "append", "app",
       "installs", "backup", "fsync"]
