# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Starts a command in a session of its own, with terminals of other sessions at which somebody types: other-terminals.py STREAMS COMMAND...
# STREAMS has a letter for each standard stream: "C" is the terminal of the command's own session, "F" a file that is not there,
# and each other letter a terminal of somebody else's. Says what is shown at each terminal, which typed words are left for others, and how the command ended.
import fcntl, os, pty, select, signal, sys, termios, time

streams, command = sys.argv[1], sys.argv[2:]
letters = sorted(set(streams) - {"F"})
terminals = {letter: pty.openpty() for letter in letters}
shown = {letter: b"" for letter in letters}
children = []


def session(letter, body):
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if letter:
            fcntl.ioctl(terminals[letter][1], termios.TIOCSCTTY, 0)
        body()
        os._exit(99)
    return pid


def execute():
    for number, letter in enumerate(streams):
        os.dup2(os.open("/dev/null", os.O_RDWR) if letter == "F" else terminals[letter][1], number)
    os.execvp(command[0], command)


for letter in letters:
    if letter != "C":
        children.append(session(letter, lambda: signal.pause()))
        os.write(terminals[letter][0], b"typed-at-%s\n" % letter.encode())
time.sleep(0.2)
pid = session("C" if "C" in letters else None, execute)
end = time.monotonic() + 120
status = None
while status is None or select.select([m for m, _ in terminals.values()], [], [], 0.3)[0]:
    if time.monotonic() > end:
        os.kill(pid, signal.SIGKILL)
        sys.exit(f"it does not end: {shown}")
    for letter, (master, _) in terminals.items():
        if select.select([master], [], [], 0.05)[0]:
            try:
                shown[letter] += os.read(master, 4096)
            except OSError:
                sys.exit(f"{letter} has gone: {shown}")
    if status is None:
        done, ended = os.waitpid(pid, os.WNOHANG)
        status = os.waitstatus_to_exitcode(ended) if done else None
print("status", status)
for letter, (master, slave) in terminals.items():
    os.set_blocking(slave, False)
    try:
        left = os.read(slave, 4096)
    except BlockingIOError:
        left = b""
    print("shown", letter, shown[letter].decode().split())
    print("left", letter, left.decode().split())
for child in children:
    os.kill(child, signal.SIGKILL)
