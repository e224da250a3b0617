#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""A service manager with a store of descriptors, as systemd has one, whose service is killed as a whole.

usage: service-manager.py INSULA STORE MOUNTPOINT KILLS [OPTION OF THE MOUNT...]

A client works in the mount meanwhile and must see nothing but a pause. Prints "ok" at the end.
"""
import array, fcntl, os, select, signal, socket, subprocess, sys, tempfile, threading, time

CLIENT = """
import fcntl, os, sys, time
os.chdir(sys.argv[1])
kept = open("kept", "w+")
lock = open("lock", "w"); fcntl.lockf(lock, fcntl.LOCK_EX); fcntl.flock(lock, fcntl.LOCK_EX)
gone = open("gone", "w+"); gone.write("nameless"); gone.flush(); os.unlink("gone")
print("ready", flush=True)
count = 0
os.set_blocking(0, False)
while sys.stdin.buffer.read() != b"":
    kept.write("x"); kept.flush(); count += 1
    with open("new", "w") as file: file.write(str(count))
    os.rename("new", "last")
    assert open("last").read() == str(count)
    os.mkdir("directory"); os.rmdir("directory")
    if sys.argv[2] == "passthrough":
        gone.seek(0); assert gone.read() == "nameless" and os.fstat(gone.fileno()).st_nlink == 0
    time.sleep(0.001)
kept.seek(0); assert kept.read() == "x" * count, (kept.tell(), count)
other = os.fork()
if other == 0:
    for locked in (fcntl.lockf, fcntl.flock):
        try: locked(open("lock", "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB); os._exit(1)
        except BlockingIOError: pass
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]) == 0
"""


class Manager:
    def __init__(self, words):
        self.words = words
        self.directory = tempfile.mkdtemp(prefix="insula-manager-")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"{self.directory}/notify")
        self.stored = []
        self.ready = threading.Event()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            data, control, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(64 * 4), socket.MSG_CMSG_CLOEXEC)
            numbers = array.array("i")
            for level, kind, part in control:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    numbers.frombytes(part[:len(part) - len(part) % numbers.itemsize])
            fields = dict(line.split("=", 1) for line in data.decode().splitlines() if "=" in line)
            if fields.get("FDSTORE") == "1":
                self.stored += [(fields["FDNAME"], number) for number in numbers]
            if fields.get("FDSTOREREMOVE") == "1":
                for entry in [entry for entry in self.stored if entry[0] == fields["FDNAME"]]:
                    self.stored.remove(entry)
                    os.close(entry[1])
            if fields.get("READY") == "1":
                self.ready.set()

    def start(self):
        self.ready.clear()
        stored = list(self.stored)
        child = os.fork()
        if child == 0:
            # Out of the way of the numbers that they get.
            copies = [fcntl.fcntl(number, fcntl.F_DUPFD, 1000) for _, number in stored]
            for index, copy in enumerate(copies):
                os.dup2(copy, 3 + index, inheritable=True)
            os.closerange(3 + len(copies), 5000)
            environment = dict(os.environ, NOTIFY_SOCKET=f"{self.directory}/notify")
            if stored:
                environment |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(stored)),
                                "LISTEN_FDNAMES": ":".join(name for name, _ in stored)}
            os.execvpe(self.words[0], self.words, environment)
        self.keeper = child
        if not self.ready.wait(20):
            self.kill()
            sys.exit("the service is not ready")

    def workers(self):
        with open(f"/proc/{self.keeper}/task/{self.keeper}/children") as file:
            return [int(word) for word in file.read().split()]

    def kill(self):
        """Ends all its processes, the keeper first."""
        workers = self.workers()
        os.kill(self.keeper, signal.SIGKILL)
        os.waitpid(self.keeper, 0)
        for worker in workers:
            process = os.pidfd_open(worker)
            os.kill(worker, signal.SIGKILL)
            if not select.select([process], [], [], 20)[0]:
                sys.exit(f"process {worker} does not end")
            os.close(process)


def main():
    insula, store, point, kills, options = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5:]
    words = [insula, "mount", "--foreground", store, point] + [word for option in options for word in ("-o", option)]
    manager = Manager(words)
    manager.start()
    place = f"{point}/Users/Shared/managed"
    os.mkdir(place)
    # What has no name is lost where it takes a descriptor of the worker's to find it again.
    way = "passthrough" if not options else "through-the-daemon"
    client = subprocess.Popen([sys.executable, "-c", CLIENT, place, way], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    assert client.stdout.readline() == "ready\n"
    for _ in range(kills):
        time.sleep(0.2)
        manager.kill()
        manager.start()
    client.stdin.close()
    if client.wait(60):
        sys.exit("the client saw more than a pause")
    # What the store has been given is taken back with the mount.
    subprocess.run([insula, "unmount", point], check=True, timeout=60)
    os.waitpid(manager.keeper, 0)
    manager.start()
    if os.listdir(place) == []:
        sys.exit("what was written is not there any more")
    subprocess.run([insula, "unmount", point], check=True, timeout=60)
    os.waitpid(manager.keeper, 0)
    print("ok")


main()
