#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors

"""Has processes wait for one byte of a file, and ends them all when another file is there: FILE COUNT OTHER."""

import fcntl
import os
import signal
import struct
import sys
import time


def lock(command, kind):
    return fcntl.fcntl(file, command, struct.pack("hhqqi4x", kind, 0, 0, 1, 0))


path, count, sign = sys.argv[1], int(sys.argv[2]), sys.argv[3]
file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
lock(fcntl.F_SETLK, fcntl.F_WRLCK)
waiting = []
for _ in range(count):
    child = os.fork()
    if child == 0:
        file = os.open(path, os.O_RDWR)
        lock(fcntl.F_SETLKW, fcntl.F_WRLCK)
        os._exit(0)
    waiting.append(child)
while not os.path.exists(sign):
    time.sleep(0.01)
for child in waiting:
    os.kill(child, signal.SIGKILL)
for child in waiting:
    os.waitpid(child, 0)
