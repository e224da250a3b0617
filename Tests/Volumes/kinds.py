# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""What volumes can be made of here: how each kind is made, mounted by itself, and added to a store.

A kind is served to root, to an ordinary user, or both. Its servers are started for it and end with it. What is not
installed is left out, and the caller says so.
"""
import os
import pathlib
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

INSULA = os.environ.get("INSULA", "insula")
PATH = {**os.environ, "PATH": "/usr/sbin:/sbin:/usr/bin:/bin:" + os.environ.get("PATH", "")}


def run(*words, check=True, timeout=600, **options):
    environment = {**PATH, **options.pop("env", {})}
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          timeout=timeout, env=environment, **options)
    text = done.stdout.decode(errors="replace")
    if check and done.returncode:
        sys.exit(f"{' '.join(words)[:300]}: status {done.returncode}\n{text[-2000:]}")
    return text


def wait(condition, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


def listens(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


class LeftOut(Exception):
    """Why a kind can't be tried here."""


class Place:
    """A mounted store of root's, an ordinary user of the machine for this alone, and room for disks and servers."""

    def __init__(self):
        # Whoever ends this leaves nothing behind.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
        self.scratch = tempfile.mkdtemp(prefix="insula-parity-", dir="/tmp")
        os.chmod(self.scratch, 0o755)
        self.processes, self.ends = [], []
        self.store, self.point = f"{self.scratch}/store", f"{self.scratch}/mnt"
        self.name, self.home = f"insula-parity-{os.getpid()}", f"{self.scratch}/home"
        os.mkdir(self.point)
        try:
            run("useradd", "--create-home", "--home-dir", self.home, "--password", "*", self.name)
            self.account = pwd.getpwnam(self.name)
            self.uid, self.gid = self.account.pw_uid, self.account.pw_gid
            run(INSULA, "init", self.store)
            run(INSULA, "mount", self.store, self.point)
            run(INSULA, "user", "add", self.name, "--store", self.store)
        except BaseException:
            self.end()
            raise

    def become(self, user):
        """The words that make somebody of root: the user, if that is meant."""
        return ("setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups", "env", "-u", "AWS_CA_BUNDLE",
                f"HOME={self.home}", "XDG_RUNTIME_DIR=", "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=") if user else ()

    def start(self, *words, **options):
        """A server, which leads a session of its own and ends with this place."""
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=open(f"{self.scratch}/servers.log", "ab"),
                                   stderr=subprocess.STDOUT, env=PATH, start_new_session=True, **options)
        self.processes.append(process)
        return process

    def port(self):
        return next(port for port in iter(lambda: random.randint(20_000, 32_000), None) if not listens(port))

    def volume(self, verb, *words, user=False, check=True):
        return run(*self.become(user), INSULA, "volume", verb, *words, "--store", self.store, check=check)

    def end(self):
        run(INSULA, "unmount", "--lazy", self.point, check=False)
        for undo in reversed(self.ends):
            undo()
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        # Sessions of sshd are the user's alone, as is all that the user has run.
        run("pkill", "-KILL", "-u", self.name, check=False)
        wait(lambda: not run("pgrep", "-u", self.name, check=False), 10)
        run("userdel", self.name, check=False)
        time.sleep(0.5)
        shutil.rmtree(self.scratch, ignore_errors=True)


class Kind:
    """One kind: `needs` are its programs, and `engine` is an option of 'insula volume add'."""

    users = (False,)
    engine = None
    # Whether each call takes a second.
    is_slow = False

    def __init__(self, name, *needs):
        self.name, self.needs = name, needs

    def missing(self):
        return [program for program in self.needs if not shutil.which(program, path=PATH["PATH"])]

    def prepare(self, place, user):
        """Makes what is to be mounted; returns the source for 'insula volume add'."""
        raise NotImplementedError

    def own(self, place, user):
        """A shell's line that mounts the same, or its like, at $PLACE and may go on in the foreground."""
        raise NotImplementedError

    def mounted(self, place, user, *words, timeout=1800):
        """Runs something with the kind's own mount as its last word, in a namespace which takes that along."""
        point = f"{place.scratch}/own-{self.name}"
        os.makedirs(point, exist_ok=True)
        os.chown(point, place.uid if user else 0, place.gid if user else 0)
        become = " ".join(place.become(user))
        script = (f"( {self.own(place, user)} ) >&2 </dev/null & for i in $(seq 200); do "
                  'grep -q " $PLACE " /proc/self/mounts && break; sleep 0.1; done; '
                  'grep -q " $PLACE " /proc/self/mounts || { echo not mounted >&2; exit 99; }; '
                  f'{"" if user else "chmod 1777 $PLACE 2>/dev/null;"} {become} "$@" "$PLACE"; status=$?; '
                  "umount -l $PLACE; exit $status")
        return run("unshare", "-m", "sh", "-c", script, "sh", *words, check=False, timeout=timeout, env={"PLACE": point})

    def add(self, place, user, source):
        """Adds the volume; returns where it is."""
        words = ["--engine", self.engine] if self.engine else []
        place.volume("add", *words, "--at", self.name, source, user=user)
        volume = f"{place.point}/Volumes/{self.name}"
        if not user:
            run("chmod", "1777", volume, check=False)
        return volume

    def remove(self, place, user):
        place.volume("eject", "--force", self.name, user=user, check=False)


class Disk(Kind):
    """An image; its own mount is of a copy."""

    def __init__(self, name, make, engine, serve, *needs, users=(False,)):
        super().__init__(name, *needs)
        self.make, self.engine, self.serve, self.users = make, engine, serve, users

    def prepare(self, place, user):
        image = f"{place.scratch}/{self.name}.img"
        for path in (image, image + ".own"):
            pathlib.Path(path).unlink(missing_ok=True)
            run("truncate", "-s", "400M", path)
            run("sh", "-c", self.make.format(image=path, uid=place.uid if user else 0, gid=place.gid if user else 0))
            if user:
                os.chown(path, place.uid, place.gid)
        return image

    def own(self, place, user):
        return self.serve.format(image=f"{place.scratch}/{self.name}.img.own", uid=place.uid if user else 0,
                                 gid=place.gid if user else 0)


class Host(Kind):
    """A directory of the machine."""

    users = (False, True)

    def prepare(self, place, user):
        for name in (self.name, self.name + "-own"):
            shutil.rmtree(f"{place.scratch}/{name}", ignore_errors=True)
            os.mkdir(f"{place.scratch}/{name}")
            os.chown(f"{place.scratch}/{name}", place.uid if user else 0, place.gid if user else 0)
        return f"{place.scratch}/{self.name}"

    def own(self, place, user):
        return f"mount --bind {place.scratch}/{self.name}-own $PLACE"


class Served(Kind):
    """A directory of a server; the volume is one, and its own mount another."""

    users = (True,)

    def directories(self, place):
        for name in ("volume", "own"):
            path = f"{place.scratch}/{self.name}-{name}"
            shutil.rmtree(path, ignore_errors=True)
            os.mkdir(path)
            os.chown(path, place.uid, place.gid)
        return f"{place.scratch}/{self.name}"


class Encrypted(Served):
    """What gocryptfs decrypts."""

    def prepare(self, place, user):
        top = self.directories(place)
        self.password = f"{place.scratch}/password"
        pathlib.Path(self.password).write_text("correct horse battery staple\n")
        run(*place.become(user), "gocryptfs", "-init", "-q", "-scryptn", "10", "-passfile", self.password, f"{top}-own")
        return f"{top}-volume/files"

    def own(self, place, user):
        return f"{' '.join(place.become(user))} gocryptfs -fg -q -passfile {self.password} {place.scratch}/{self.name}-own $PLACE"

    def add(self, place, user, source):
        place.volume("create", self.name, "--encrypted", "--in", source, "--password-file", self.password, user=user)
        return f"{place.point}/Volumes/{self.name}"


class SFTP(Served):
    OPTIONS = "reconnect,ServerAliveInterval=15,ServerAliveCountMax=3,BatchMode=yes,ConnectTimeout=20"

    def prepare(self, place, user):
        top = self.directories(place)
        self.number, account = place.port(), f"{place.scratch}/sshd"
        os.makedirs(account, exist_ok=True)
        pathlib.Path(f"{account}/config").write_text(
            f"Port {self.number}\nListenAddress 127.0.0.1\nHostKey {account}/host\n"
            f"AuthorizedKeysFile {account}/key.pub\nAllowUsers {place.name}\nStrictModes no\nUsePAM no\n"
            "PidFile none\nSubsystem sftp internal-sftp\n")
        if not os.path.exists(f"{account}/host"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{account}/host")
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{account}/key")
        os.makedirs(f"{place.home}/.ssh", exist_ok=True)
        shutil.copy(f"{account}/key", f"{place.home}/.ssh/id_ed25519")
        host = " ".join(pathlib.Path(f"{account}/host.pub").read_text().split()[:2])
        pathlib.Path(f"{place.home}/.ssh/known_hosts").write_text(f"[127.0.0.1]:{self.number} {host}\n")
        run("chown", "-R", f"{place.uid}:{place.gid}", f"{place.home}/.ssh")
        self.server = place.start("unshare", "-m", "sh", "-c", "mount -t tmpfs none /run && mkdir /run/sshd && exec "
                                  f"/usr/sbin/sshd -D -f {account}/config")
        if not wait(lambda: listens(self.number)):
            raise LeftOut("sshd does not start")
        return f"sftp://{place.name}@127.0.0.1:{self.number}{top}-volume"

    def own(self, place, user):
        become = " ".join(place.become(user))
        return (f"{become} sshfs -f -o {self.OPTIONS},port={self.number} "
                f"{place.name}@127.0.0.1:{place.scratch}/{self.name}-own $PLACE")


RCLONE = ("rclone mount --vfs-cache-mode writes --vfs-write-back 1s --dir-cache-time 5s --contimeout 20s --timeout 60s --retries 1 "
          "--low-level-retries 2 --ask-password=false --use-mmap --")


class WebDAV(Served):
    is_slow = True

    def prepare(self, place, user):
        top = self.directories(place)
        self.ports = []
        for name in ("volume", "own"):
            port = place.port()
            place.start(*place.become(user), "rclone", "serve", "webdav", f"{top}-{name}", "--addr",
                        f"127.0.0.1:{port}", "--config", "/dev/null")
            if not wait(lambda: listens(port)):
                raise LeftOut("rclone serves no WebDAV")
            self.ports.append(port)
        return f"dav://127.0.0.1:{self.ports[0]}/"

    def own(self, place, user):
        return f"{' '.join(place.become(user))} {RCLONE} ':webdav,url=\"http://127.0.0.1:{self.ports[1]}/\":' $PLACE"


class S3(Served):
    """rclone on the server of moto, which is fetched from PyPI into a virtual environment of this run's."""

    is_slow = True

    def prepare(self, place, user):
        program = os.environ.get("MOTO_SERVER") or f"{place.scratch}/moto/bin/moto_server"
        if not os.path.exists(program):
            try:
                run(sys.executable, "-m", "venv", f"{place.scratch}/moto")
                run(f"{place.scratch}/moto/bin/pip", "-q", "install", "moto[server]")
            except (SystemExit, subprocess.TimeoutExpired) as error:
                raise LeftOut(f"no S3 server can be fetched from PyPI: {str(error)[-300:]}") from None
        port = place.port()
        place.start(program, "-H", "127.0.0.1", "-p", str(port))
        if not wait(lambda: listens(port)):
            raise LeftOut("moto's S3 server does not start")
        config = f"{place.home}/.config/rclone/rclone.conf"
        os.makedirs(os.path.dirname(config), exist_ok=True)
        pathlib.Path(config).write_text(
            f"[s3]\ntype = s3\nprovider = Other\naccess_key_id = a\nsecret_access_key = b\n"
            f"endpoint = http://127.0.0.1:{port}\nforce_path_style = true\n")
        run("chown", "-R", f"{place.uid}:{place.gid}", f"{place.home}/.config")
        for name in ("volume", "own"):
            run(*place.become(user), "rclone", "mkdir", f"s3:{name}")
        return "rclone:s3:volume"

    def own(self, place, user):
        return f"{' '.join(place.become(user))} {RCLONE} s3:own $PLACE"


class Gluster(Kind):
    """A volume of one brick each."""

    def prepare(self, place, user):
        def cluster(*words, check=True):
            return run("gluster", "--mode=script", *words, check=check)
        if "does not exist" in cluster("volume", "list", check=False) or not self.is_up():
            place.start("glusterd", "--no-daemon", "--log-level", "ERROR")
            if not wait(self.is_up):
                raise LeftOut("glusterd does not start")
        self.host = socket.gethostname()
        for name in ("volume", "own"):
            volume, brick = f"insula-{name}-{os.getpid()}", f"{place.scratch}/brick-{name}"
            shutil.rmtree(brick, ignore_errors=True)
            os.mkdir(brick)
            cluster("volume", "create", volume, f"{self.host}:{brick}", "force")
            place.ends.append(lambda volume=volume: (cluster("volume", "stop", volume, "force", check=False),
                                                     cluster("volume", "delete", volume, check=False)))
            cluster("volume", "start", volume)
        return f"gluster://{self.host}/insula-volume-{os.getpid()}"

    @staticmethod
    def is_up():
        return subprocess.run(["gluster", "--mode=script", "volume", "list"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=PATH).returncode == 0

    def own(self, place, user):
        return f"mount -t glusterfs {self.host}:/insula-own-{os.getpid()} $PLACE"


def by_kernel(name, make, *needs):
    return Disk(name, make, "kernel", "mount -o loop {image} $PLACE", *needs)


BOTH = (False, True)
KINDS = [
    by_kernel("ext4", "mkfs.ext4 -qF {image}", "mkfs.ext4"),
    by_kernel("xfs", "mkfs.xfs -q {image}", "mkfs.xfs"),
    by_kernel("btrfs", "mkfs.btrfs -q {image}", "mkfs.btrfs"),
    Host("host"),
    Disk("ntfs", "mkfs.ntfs -q -F {image}", "program", "ntfs-3g -o allow_other,uid={uid},gid={gid} {image} $PLACE",
         "mkfs.ntfs", "ntfs-3g", users=BOTH),
    Disk("exfat", "mkfs.exfat {image} >&2", "program",
         "disk=$(losetup --find --show {image}); mount.exfat-fuse -o allow_other,uid={uid},gid={gid} $disk $PLACE; "
         "losetup --detach $disk", "mkfs.exfat", "mount.exfat-fuse",
         users=BOTH),
    Disk("fuse2fs", "mkfs.ext4 -qF -O ^has_journal -E root_owner={uid}:{gid} {image}", "program",
         "fuse2fs -f -o allow_other {image} $PLACE", "mkfs.ext4", "fuse2fs", users=BOTH),
    Encrypted("encrypted", "gocryptfs"),
    SFTP("sshfs", "sshfs", "sshd", "ssh-keygen"),
    WebDAV("webdav", "rclone"),
    S3("s3", "rclone"),
    Gluster("gluster", "glusterd", "gluster", "glusterfs"),
]


def chosen(names):
    """The kinds of these names, or all; what can't be tried here is said."""
    unknown = set(names) - {kind.name for kind in KINDS}
    if unknown:
        sys.exit(f"no kind is called {', '.join(sorted(unknown))}; there are {', '.join(kind.name for kind in KINDS)}")
    for kind in KINDS:
        if names and kind.name not in names:
            continue
        if missing := kind.missing():
            print(f"{kind.name}: LEFT OUT, not installed: {', '.join(missing)}", flush=True)
            continue
        yield kind
