# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# What one user of a machine tries against another's, or root's, use of a store: neighbour.py NAME. An attempt prints what it has got hold of.
#
# Those on processes look at all that run as this user, again and again for SECONDS, as root may be about to start one.
import array, ctypes, json, os, re, socket, sys, time

libc = ctypes.CDLL(None, use_errno=True)
attempts = {}


def attempt(function):
    attempts[function.__name__] = function


def processes():
    own = {os.getpid(), os.getppid()}
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in own:
            try:
                with open(f"/proc/{name}/status", "rb") as status:
                    if b"\nUid:\t%d\t" % os.getuid() in status.read():
                        yield int(name)
            except OSError:
                pass


def on_processes(look):
    end = time.monotonic() + float(os.environ["SECONDS_TO_TRY"])
    while time.monotonic() < end:
        for pid in processes():
            try:
                look(pid)
            except (OSError, ValueError):
                pass


def descriptors(pid):
    process = os.pidfd_open(pid)
    for number in range(3, 64):
        fd = libc.syscall(438, process, number, 0)
        if fd >= 0:
            yield fd
            os.close(fd)
    os.close(process)


def show(text):
    for found in re.findall(rb"prize-[-0-9A-F]+", text):
        print(found.decode())
    sys.stdout.flush()


@attempt
def descriptors_by_number():
    def look(pid):
        for fd in descriptors(pid):
            try:
                show(os.pread(fd, 4096, 0))
            except OSError:
                pass

    on_processes(look)


@attempt
def descriptors_in_proc():
    def look(pid):
        for name in os.listdir(f"/proc/{pid}/fd"):
            if int(name) > 2 and os.path.isfile(f"/proc/{pid}/fd/{name}"):
                show(open(f"/proc/{pid}/fd/{name}", "rb").read(4096))

    on_processes(look)


@attempt
def environment():
    on_processes(lambda pid: show(open(f"/proc/{pid}/environ", "rb").read()))


@attempt
def working_directory():
    on_processes(lambda pid: show(open(f"/proc/{pid}/cwd/secret", "rb").read()))


def maps(pid):
    for line in open(f"/proc/{pid}/maps"):
        first, last = (int(word, 16) for word in line.split()[0].split("-"))
        if "rw" in line and last - first <= 1 << 24:
            yield first, last - first


@attempt
def memory_in_proc():
    def look(pid):
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for start, size in maps(pid):
                memory.seek(start)
                show(memory.read(size))

    on_processes(look)


@attempt
def memory_by_number():
    class Part(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]

    def look(pid):
        for start, size in maps(pid):
            bytes = ctypes.create_string_buffer(size)
            here, there = Part(ctypes.addressof(bytes), size), Part(start, size)
            if libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) > 0:
                show(bytes.raw)

    on_processes(look)


@attempt
def connection_to_the_daemon():
    """A connection that was made as root is obeyed as root."""

    def look(pid):
        for fd in descriptors(pid):
            try:
                with socket.socket(fileno=os.dup(fd)) as line:
                    line.settimeout(1)
                    line.send(b'{"verb":"running"}\n')
                    # Somebody's app that root alone sees besides them.
                    if re.search(rb'"user":%s\b' % os.environ["SEEN"].encode(), line.recv(65536)):
                        print("obeyed")
            except OSError:
                pass

    on_processes(look)


# The daemon is asked without the command, which refuses much of this by itself.


def ask(**request):
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(30)
    line.connect(os.environ["CONTROL"])
    line.send(json.dumps(request).encode() + b"\n")
    text, passed, _, _ = line.recvmsg(65536, socket.CMSG_SPACE(4))
    descriptors = array.array("i")
    if passed:
        descriptors.frombytes(passed[0][2][:4])
    return json.loads(text.split(b"\n")[0]), line, list(descriptors)


victim = int(os.environ.get("VICTIM", 0))
app = os.environ.get("APP", "")


@attempt
def listing_of_anothers_apps():
    print("obeyed" if ask(verb="running", user=victim)[0].get("running") else "")


@attempt
def signal_for_anothers_app():
    print("obeyed" if ask(verb="end", identifier=app, user=victim, signal=10)[0]["ok"] else "")


@attempt
def end_of_anothers_app():
    print("obeyed" if ask(verb="end", identifier=app, user=victim)[0]["ok"] else "")


@attempt
def end_of_everybodys_app():
    print("obeyed" if ask(verb="end", identifier=app)[0]["ok"] else "")


@attempt
def view_of_anothers_app():
    print("obeyed" if ask(verb="run", identifier=app, user=victim)[2] else "")


@attempt
def waiting_process_that_is_roots_by_now():
    """Asks for a view, and becomes root's by a program that is allowed to everybody; it then waits to be ended."""
    reply, line, passed = ask(verb="run", identifier=app)
    for fd in passed + [line.fileno()]:
        os.set_inheritable(fd, True)
    program = "import os, time; os.setresuid(0, 0, 0); print('root', flush=True); time.sleep(120)"
    os.execv(os.environ["BECOME_ROOT"], ["python3", "-c", program])


@attempt
def naive_command():
    """What root's command must not do: it becomes somebody with all that root has."""
    name, uid, gid = os.environ["NAME"], int(os.environ["VICTIM"]), int(os.environ["VICTIM_GROUP"])
    secret = os.open("secret", os.O_RDONLY)
    line = socket.socket(socket.AF_UNIX)
    line.connect(os.environ["CONTROL"])
    os.initgroups(name, gid)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    libc.prctl(4, 1, 0, 0, 0)
    time.sleep(float(os.environ["SECONDS_TO_TRY"]) + 1)


if len(sys.argv) == 2 and sys.argv[1] in attempts:
    attempts[sys.argv[1]]()
else:
    print("\n".join(attempts))
    sys.exit(2)
