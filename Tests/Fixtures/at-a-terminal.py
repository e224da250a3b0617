# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Runs a command at a terminal of its own and does something to that, as a person would: at-a-terminal.py WHAT COMMAND...
import os, pty, select, signal, sys, time

what, command = sys.argv[1], sys.argv[2:]
programs = {
    "interrupt": 'trap "echo caught; exit 5" INT; echo ready; while :; do sleep 0.05; done',
    "quit": 'trap "echo caught; exit 5" QUIT; echo ready; while :; do sleep 0.05; done',
    "hangup": 'trap "exit 5" HUP; echo ready; while :; do sleep 0.05; done',
    "stop": 'echo ready; while :; do sleep 0.05; echo tick; done',
    "type": 'echo ready; read line; echo "got $line"; test -t 0 && test -t 1 && stty size && exit 5',
}
pid, terminal = pty.fork()
if pid == 0:
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], command + ["sh", "-c", programs[what]])
seen = b""


def wait_for(word, seconds=20):
    global seen
    end = time.monotonic() + seconds
    while word not in seen:
        if time.monotonic() > end:
            sys.exit(f"no {word!r}, but {seen!r}")
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                seen += os.read(terminal, 4096)
            except OSError:
                sys.exit(f"ended without {word!r}: {seen!r}")


def end():
    status = os.waitpid(pid, 0)[1]
    if os.waitstatus_to_exitcode(status) != 5:
        sys.exit(f"ended with {os.waitstatus_to_exitcode(status)}: {seen!r}")


wait_for(b"ready")
if what == "interrupt":
    os.write(terminal, b"\x03")
    wait_for(b"caught")
    end()
elif what == "quit":
    os.write(terminal, b"\x1c")
    wait_for(b"caught")
    end()
elif what == "hangup":
    os.close(terminal)
    end()
elif what == "type":
    os.write(terminal, b"words\n")
    wait_for(b"got words")
    end()
else:
    wait_for(b"tick")
    os.write(terminal, b"\x1a")
    status = os.waitpid(pid, os.WUNTRACED)[1]
    if not os.WIFSTOPPED(status):
        sys.exit(f"not stopped: {status}")
    while select.select([terminal], [], [], 0.3)[0]:
        os.read(terminal, 4096)
    seen = b""
    if select.select([terminal], [], [], 0.5)[0]:
        sys.exit("it is stopped, and the app goes on")
    os.killpg(pid, signal.SIGCONT)
    wait_for(b"tick")
    os.killpg(pid, signal.SIGKILL)
