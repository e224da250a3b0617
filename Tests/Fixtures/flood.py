#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors

"""Abuses a control socket in one of several ways until it is killed: flood.py SOCKET WAY PROCESSES."""

import array
import os
import random
import socket
import sys

PATH, WAY, PROCESSES = sys.argv[1], sys.argv[2], int(sys.argv[3])
STATUS = b'{"verb":"status"}\n'


def connect(blocking=True):
    made = socket.socket(socket.AF_UNIX)
    made.setblocking(blocking)
    made.connect(PATH)
    return made


def hold(count, act):
    """Keeps so many connections, and does something with each in turn."""
    held = []
    while True:
        try:
            while len(held) < count:
                held.append(connect())
            for one in list(held):
                try:
                    act(one)
                except BlockingIOError:
                    pass
                except OSError:
                    one.close()
                    held.remove(one)
        except OSError:
            pass


def send(one, data, *extra):
    one.sendmsg([data], list(extra), socket.MSG_DONTWAIT)


def fill_backlog():
    while True:
        made = socket.socket(socket.AF_UNIX)
        made.setblocking(False)
        try:
            made.connect(PATH)
        except OSError:
            pass
        made.close()


def connect_and_ask():
    while True:
        try:
            with connect() as one:
                one.send(STATUS * 50)
                one.recv(1 << 16)
        except OSError:
            pass


def connect_and_leave():
    while True:
        try:
            with connect() as one:
                one.send(STATUS)
        except OSError:
            pass


def ask_and_read(one):
    send(one, STATUS * 20)
    one.recv(1 << 16, socket.MSG_DONTWAIT)


def pass_descriptors(one):
    opened = [os.open("/", os.O_RDONLY), os.open("/etc/passwd", os.O_RDONLY), 0] * 80
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", opened))
    try:
        send(one, b" " * random.randrange(1, 50) + STATUS, rights)
    finally:
        for number in set(opened) - {0}:
            os.close(number)


WAYS = {
    "backlog": fill_backlog,
    "connect": connect_and_ask,
    "groups": connect_and_leave,
    "silent": lambda: hold(800, lambda one: send(one, b"")),
    "half": lambda: hold(400, lambda one: one.recv(1, socket.MSG_DONTWAIT) if one in SPOKEN else half(one)),
    "bytes": lambda: hold(60, lambda one: send(one, b"x")),
    "garbage": lambda: hold(60, lambda one: send(one, random.randbytes(3000) + b"\n[[[[[{\n\x00\n")),
    "deaf": lambda: hold(60, lambda one: send(one, STATUS * 200)),
    "asking": lambda: hold(60, ask_and_read),
    "questions": lambda: hold(60, lambda one: send(one, b'{"verb":"apps"}\n{"verb":"grants"}\n{"verb":"running"}\n')),
    "descriptors": lambda: hold(60, pass_descriptors),
}
SPOKEN = set()


def half(one):
    SPOKEN.add(one)
    send(one, b'{"verb":')


if WAY == "groups":
    # As anybody can have them in a user namespace.
    os.setgroups(range(1, 65000))
    os.setgid(65534)
    os.setuid(65534)
for _ in range(PROCESSES - 1):
    if os.fork() == 0:
        break
WAYS[WAY]()
