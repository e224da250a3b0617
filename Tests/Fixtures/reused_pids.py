#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Has processes come by the numbers of others that were traced, or belonged to a traced tree. As root.

    reused_pids.py SOCKET DIRECTORY

Prints what a stranger gets of a trace whose process was killed, and what a tracer is told of a stranger.
"""
import ctypes
import json
import os
import signal
import socket
import sys
import time

control, place = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
VICTIM, STRANGER = 54321, 54322


def fork_as(number):
    """fork(2) with a number of our choice (clone3 with set_tid), or any if that is 0."""
    if number == 0:
        return os.fork()
    chosen = (ctypes.c_int * 1)(number)
    arguments = (ctypes.c_uint64 * 11)(0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(chosen), 1, 0)
    pid = libc.syscall(435, ctypes.byref(arguments), ctypes.sizeof(arguments))
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone3")
    return pid


def child(user, body, number=0):
    pid = fork_as(number)
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            body()
        finally:
            sys.stdout.flush()
            os._exit(0)
    return pid


def connect():
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(10)
    client.connect(control)
    return client


def ask(client, verb):
    client.sendall((json.dumps({"verb": verb}) + "\n").encode())
    return json.loads(client.recv(1 << 20))


def look(count):
    for number in range(count):
        try:
            os.stat(f"{place}/missing-{os.getpid()}-{number}")
        except FileNotFoundError:
            pass


def victim():
    assert ask(connect(), "trace")["ok"]
    look(50)
    os.kill(os.getpid(), signal.SIGKILL)


killed = child(VICTIM, victim)
os.waitpid(killed, 0)
os.waitpid(child(STRANGER, lambda: print("stranger gets", ask(connect(), "traced")), killed), 0)

ready, ready_out = os.pipe()
done, done_out = os.pipe()


def tracer():
    client = connect()
    assert ask(client, "trace")["ok"]
    pid = os.fork()
    if pid == 0:
        look(1)
        os._exit(0)
    os.waitpid(pid, 0)
    # In no less time does a number come round.
    time.sleep(0.15)
    os.write(ready_out, pid.to_bytes(4, "little"))
    os.read(done, 1)
    own = ask(client, "traced")["requests"]["own"]
    print("tracer is told of", own.get("LOOKUP", {}).get("count", 0), "lookups")


tracing = child(STRANGER, tracer)
member = int.from_bytes(os.read(ready, 4), "little")
os.waitpid(child(VICTIM, lambda: look(50), member), 0)
os.write(done_out, b"x")
os.waitpid(tracing, 0)
