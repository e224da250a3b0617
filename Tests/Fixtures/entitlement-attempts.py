#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""What a program tries to get at what is private of the user whose home is $HOME_OF_USER.

It is run as an app that is entitled to everything, and by the user themselves. It prints the name of each attempt
that succeeds, and last how many it has made.
"""
import ctypes
import os
import sys

home = os.environ["HOME_OF_USER"]
tree = os.path.dirname(os.path.dirname(home))
own = os.environ["HOME"]
libc = ctypes.CDLL(None, use_errno=True)
made = 0


def attempt(name, body):
    global made
    made += 1
    try:
        body()
    except OSError:
        return
    print(name)


def exchange(one, other):
    if libc.renameat2(-100, one.encode(), -100, other.encode(), 2) != 0:
        raise OSError(ctypes.get_errno(), one)


def copied(path):
    size = os.stat(path).st_size
    out = os.open(own + "/Documents/copied", os.O_RDWR | os.O_CREAT, 0o600)
    if os.sendfile(out, os.open(path, os.O_RDONLY), 0, size) != size:
        raise OSError(5, path)


def through_link(path):
    link = own + "/Documents/link"
    if os.path.lexists(link):
        os.unlink(link)
    os.symlink(path, link)
    os.close(os.open(link, os.O_RDONLY))


def step_by_step(path):
    directory = os.open("/", os.O_PATH)
    names = path.strip("/").split("/")
    for name in names[:-1]:
        directory = os.open(name, os.O_PATH | os.O_DIRECTORY, dir_fd=directory)
    os.close(os.open(names[-1], os.O_RDONLY, dir_fd=directory))


def moved(path, other):
    """Moves something away and back."""
    os.rename(path, other)
    os.rename(other, path)


def exchanged(path):
    other = os.path.dirname(path) + "/exchanged"
    if not os.path.isdir(other):
        os.mkdir(other)
    exchange(path, other)
    exchange(other, path)


def changed(path):
    with open(path, "a") as file:
        file.write("x")


files = sys.argv[1:]
for name in files:
    path = home + "/" + name
    directory = os.path.dirname(path)
    attempt("read " + name, lambda: open(path, "rb").read())
    attempt("spelt read " + name, lambda: open(home + "/" + name.upper(), "rb").read())
    attempt("dots " + name, lambda: open(directory + "/./../" + os.path.basename(directory) + "/"
                                         + os.path.basename(path), "rb").read())
    attempt("around " + name, lambda: open(own + "/../../../../" + name, "rb").read())
    attempt("root " + name, lambda: open("/proc/self/root" + path, "rb").read())
    attempt("link " + name, lambda: through_link(path))
    attempt("steps " + name, lambda: step_by_step(path))
    attempt("path only " + name, lambda: os.close(os.open(path, os.O_PATH)))
    attempt("list " + name, lambda: os.listdir(directory))
    attempt("status " + name, lambda: os.stat(path))
    attempt("attributes " + name, lambda: os.listxattr(path))
    attempt("copy " + name, lambda: copied(path))
    attempt("hard link " + name, lambda: os.link(path, directory + "/linked"))
    attempt("hard link out " + name, lambda: os.link(path, home + "/linked-" + str(made)))
    attempt("change " + name, lambda: changed(path))
    attempt("mode " + name, lambda: os.chmod(path, 0o644))
    attempt("make " + name, lambda: os.close(os.open(directory + "/new", os.O_CREAT | os.O_WRONLY)))
    attempt("directory " + name, lambda: os.mkdir(directory + "/newdirectory"))
    attempt("move out " + name, lambda: moved(path, home + "/out"))
    attempt("remove " + name, lambda: os.unlink(path))
for name in ("Music", "Pictures", "Movies", "Library/Calendars", "Library/Application Support",
             "Library/Application Support/AddressBook", "Downloads"):
    attempt("move place " + name, lambda: moved(home + "/" + name, os.path.dirname(home + "/" + name) + "/moved"))
    attempt("exchange place " + name, lambda: exchanged(home + "/" + name))
print("tried", made)
