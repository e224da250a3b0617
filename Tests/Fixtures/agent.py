#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""An agent that answers as it is told.

usage: agent.py SOCKET ANSWER...

It writes "ready" when it is connected, each task that it gets as a line of JSON, and what comes of its answers
as "done" or "failed ERRNO". An answer is allow, deny, dismiss, choose:PATH, or one of these: hang (it says
nothing and waits), crash (it hangs up), twice (it allows, and denies after that), wrong (another number).
"""
import json
import os
import socket
import sys
import time


class Daemon:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        self.socket.connect(path)
        self.lines = self.socket.makefile()

    def send(self, **fields):
        self.socket.sendall((json.dumps(fields) + "\n").encode())

    def receive(self):
        line = self.lines.readline()
        return json.loads(line) if line else None

    def answer(self, number, answer):
        self.send(verb="answer-task", number=number, answer=answer)
        reply = self.receive()
        say("done" if reply == {"ok": True} else f"failed {reply.get('errno') if reply else 'closed'}")


def say(text):
    print(text, flush=True)


def main():
    daemon = Daemon(sys.argv[1])
    for index, word in enumerate(sys.argv[2:]):
        daemon.send(verb="next-task")
        if index == 0:
            say("ready")
        reply = daemon.receive()
        task = reply.get("task") if reply else None
        if task is None:
            say(f"no task: {reply}")
            return
        say(json.dumps(task, sort_keys=True))
        number = task["number"]
        if word == "crash":
            os._exit(0)
        if word == "hang":
            time.sleep(100)
            return
        if word == "wrong":
            daemon.answer(number + 1000, {"allow": {}})
        elif word == "twice":
            daemon.answer(number, {"allow": {}})
            daemon.answer(number, {"deny": {}})
        elif word.startswith("choose:"):
            path, inode = word[7:].rsplit("#", 1)
            daemon.answer(number, {"chosen": {"path": path, "inode": int(inode)}})
        else:
            daemon.answer(number, {word: {}})


main()
