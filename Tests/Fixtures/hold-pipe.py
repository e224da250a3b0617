# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Holds the kernel's locks of files with a pipe: FILE...

Opens all files for writing, and has the kernel move what comes from a pipe that is empty to the first one (with
splice(2)), and to the next one as soon as there is a file "go" beside it: "late" below. Prints "held" when the
first one waits. When its input ends, it writes "late" into each pipe, and ends when that has arrived.
"""
import os, sys, threading, time

pipes, threads = [], []
def move(name, file, pipe, go):
    while go and not os.path.exists(go):
        time.sleep(0.05)
    done = 0
    while done < 4:
        done += os.splice(pipe, file, 4 - done)
for number, name in enumerate(sys.argv[1:]):
    file = os.open(name, os.O_WRONLY | os.O_CREAT, 0o666)
    reading, writing = os.pipe()
    go = os.path.dirname(name) + "/go" if number else None
    pipes.append(writing)
    threads.append(threading.Thread(target=move, args=(name, file, reading, go)))
    threads[-1].start()
end = time.monotonic() + 30
def waits():
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/wchan") as where:
            if "pipe" in where.read():
                return True
while not waits():
    assert time.monotonic() < end, "the first file is not written to"
    time.sleep(0.05)
print("held", flush=True)
sys.stdin.read()
for pipe in pipes:
    os.write(pipe, b"late")
for thread in threads:
    thread.join()
