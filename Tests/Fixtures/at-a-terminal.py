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


def become_the_command():
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTTOU):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], command + ["sh", "-c", programs[what]])


reading, writing = os.pipe()
pid, terminal = pty.fork()
if pid == 0:
    if what != "stop":
        become_the_command()
    # As a shell does: a job in a group of its own, and the terminal given to that; a group without a shell is not stopped.
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(0, os.getpid())
        become_the_command()
    os.write(writing, b"%d " % job)
    while True:
        status = os.waitpid(job, os.WUNTRACED)[1]
        os.write(writing, b"stopped " if os.WIFSTOPPED(status) else b"ended ")
        if not os.WIFSTOPPED(status):
            os._exit(0)
seen = b""


def wait_for(word, seconds=120):
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
    words = b""
    while b"stopped" not in words:
        if not select.select([reading], [], [], 120)[0]:
            sys.exit(f"it is not stopped: {words!r}")
        words += os.read(reading, 100)
    job = int(words.split()[0])
    while select.select([terminal], [], [], 0.3)[0]:
        os.read(terminal, 4096)
    seen = b""
    if select.select([terminal], [], [], 0.5)[0]:
        sys.exit("it is stopped, and the app goes on")
    os.killpg(job, signal.SIGCONT)
    wait_for(b"tick")
    os.killpg(job, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
