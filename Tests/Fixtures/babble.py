# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Says senseless things to a daemon, in the words that are about running apps: babble.py SOCKET SEED
import array, json, os, random, socket, sys

path, seed = sys.argv[1], int(sys.argv[2])
random.seed(seed)
things = [None, True, 0, -1, 1 << 31, 1 << 63, 2 ** 70, "", "x", "org.example.notes", "../x", "a" * 300, [], {}, [1], "\0", 3.5]
verbs = ["run", "running", "end", "nonsense", 7, None]
answers = 0
for number in range(400):
    caller = socket.socket(socket.AF_UNIX)
    caller.settimeout(120)
    caller.connect(path)
    request = {"verb": random.choice(verbs)}
    for key in ("identifier", "user", "signal", "place", "order", "lazily"):
        if random.random() < 0.5:
            request[key] = random.choice(things)
    line = json.dumps(request).encode() + b"\n"
    kind = random.randrange(6)
    if kind == 0:
        line = line[: random.randrange(len(line))]
    elif kind == 1:
        line = bytes(random.randrange(256) for _ in range(200)) + b"\n"
    elif kind == 2:
        line = b"[" * 30000
    passed = []
    if random.random() < 0.5:
        what = random.choice(["/dev/fuse", "/", "/dev/null", "/proc/self/ns/mnt", "/proc/self/ns/user"])
        passed = [os.open(what, os.O_RDWR if what == "/dev/fuse" else os.O_RDONLY)]
    try:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", passed))] if passed else []
        if passed and random.random() < 0.7:
            # As whoever has something to pass on does it: asks for it, and passes it on when told to.
            caller.send(b'{"verb":"pass"}\n')
            answers += b"\n" in caller.recv(65536)
            caller.sendmsg([b"\n"], rights)
            answers += b"\n" in caller.recv(65536)
            rights = []
        try:
            caller.sendmsg([line], rights)
        except PermissionError:
            # A descriptor that nobody waits for: the kernel refuses it.
            caller.send(line)
        if kind > 2 and random.random() < 0.8:
            answers += b"\n" in caller.recv(65536)
    except (BrokenPipeError, ConnectionResetError):
        pass
    for descriptor in passed:
        os.close(descriptor)
    caller.close()
print(answers)
