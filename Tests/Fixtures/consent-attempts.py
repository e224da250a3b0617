#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Tries to learn something of what is private, from inside an app.

It writes a line of JSON for each attempt: its name, and what came of it. Who runs this compares the lines:
without consent they are the same whatever is in the libraries, and with consent each tells something.
"""
import contextlib
import ctypes
import errno
import fcntl
import glob
import json
import mmap
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys

HOME = os.environ["HOME_OF_USER"]
MUSIC = HOME + "/Music"
LIBRARY = MUSIC + "/Music"
SONG = LIBRARY + "/song"
PICTURES = HOME + "/Pictures"
PHOTOS = PICTURES + "/All.photoslibrary"
PHOTO = PHOTOS + "/1"
OWN = os.environ["HOME"]
libc = ctypes.CDLL(None, use_errno=True)
attempts = []


def attempt(body):
    attempts.append((body.__name__, body))
    return body


def named(name, body):
    attempts.append((name, body))


def call(function, *arguments):
    result = function(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def run(*words, **options):
    done = subprocess.run(words, capture_output=True, timeout=20, **options)
    # Without what is its own and changes each time.
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def opened(path, flags=os.O_RDONLY):
    descriptor = os.open(path, flags)
    try:
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


# What is said of the place itself.
for field in ["st_size", "st_blocks", "st_nlink", "st_mtime_ns", "st_ctime_ns", "st_atime_ns", "st_mode"]:
    if field not in ("st_mode",):
        named("stat_" + field, lambda f=field: getattr(os.stat(MUSIC), f))
named("stat_pictures", lambda: tuple(os.stat(PICTURES))[3:4] + tuple(os.stat(PICTURES))[6:])
named("lstat", lambda: tuple(os.lstat(MUSIC))[6:])
named("stat_command", lambda: run("stat", "-c", "%s %b %h %Y %Z %X %W", MUSIC))
named("ls_d", lambda: run("ls", "-ld", "--time-style=full-iso", MUSIC))
named("ls_home", lambda: run("ls", "-la", "--time-style=full-iso", HOME))
named("scandir_home", lambda: sorted((e.name, e.stat().st_size, e.stat().st_mtime_ns) for e in os.scandir(HOME)))


@attempt
def fstat_by_path_descriptor():
    descriptor = os.open(MUSIC, os.O_PATH)
    try:
        return tuple(os.fstat(descriptor))[6:]
    finally:
        os.close(descriptor)


@attempt
def statx_without_sync():
    buffer = ctypes.create_string_buffer(256)
    call(libc.statx, -100, MUSIC.encode(), 0x4000, 0xFFF, buffer)
    return buffer.raw[16:20].hex(), buffer.raw[40:56].hex(), buffer.raw[64:128].hex()


@attempt
def statx_with_sync():
    buffer = ctypes.create_string_buffer(256)
    call(libc.statx, -100, MUSIC.encode(), 0x2000, 0xFFF, buffer)
    return buffer.raw[40:56].hex(), buffer.raw[64:128].hex()


# What is in it, by listing.
named("listdir", lambda: os.listdir(MUSIC))
named("listdir_library", lambda: os.listdir(LIBRARY))
named("listdir_pictures", lambda: os.listdir(PICTURES))
named("listdir_photos", lambda: os.listdir(PHOTOS))
named("scandir", lambda: [e.name for e in os.scandir(MUSIC)])
named("walk", lambda: list(os.walk(HOME + "/Pictures", onerror=lambda e: (_ for _ in ()).throw(e))))
named("glob", lambda: glob.glob(MUSIC + "/*"))
named("glob_below", lambda: glob.glob(HOME + "/**/*.photoslibrary", recursive=True))
named("ls", lambda: run("ls", MUSIC))
named("ls_recursive", lambda: run("ls", "-R", PICTURES))
named("find", lambda: run("find", MUSIC))
named("find_home", lambda: run("find", HOME, "-maxdepth", "3", "-path", "*Music*"))
named("du", lambda: run("du", "-s", MUSIC))
named("du_inodes", lambda: run("du", "--inodes", "-s", PICTURES))
named("tar", lambda: run("tar", "-C", HOME, "-cf", "/dev/null", "-v", "Music"))
named("copy_recursively", lambda: run("cp", "-r", LIBRARY, OWN + "/tmp/copy"))
named("shell_glob", lambda: run("sh", "-c", 'cd "$1" && echo *', "sh", MUSIC))
named("diff", lambda: run("diff", "-r", MUSIC, OWN + "/Documents"))
named("grep", lambda: run("grep", "-r", "song", MUSIC))


@attempt
def list_by_descriptor_of_proc():
    descriptor = os.open(MUSIC, os.O_PATH)
    try:
        return os.listdir(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def within(directory):
    before = os.getcwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)


@attempt
def list_from_within():
    with within(MUSIC):
        return os.listdir(".")


@attempt
def list_by_cwd_of_proc():
    with within(MUSIC):
        return os.listdir("/proc/self/cwd")


@attempt
def list_by_parent_of_child():
    return os.listdir(LIBRARY + "/..")


@attempt
def list_by_way_around():
    return os.listdir(HOME + "/Music/../Music/./Music")


@attempt
def list_by_link_of_our_own():
    link = OWN + "/tmp/way"
    if os.path.islink(link):
        os.unlink(link)
    os.symlink(LIBRARY, link)
    return os.listdir(link)


@attempt
def list_by_path_of_a_mac():
    return os.listdir("/Users/" + HOME.rsplit("/", 1)[1] + "/Music")


# Whether a name is there.
for name, path in [("song", SONG), ("library", LIBRARY), ("photos", PHOTOS), ("photo", PHOTO)]:
    named("stat_of_" + name, lambda p=path: os.stat(p).st_size)
    named("exists_" + name, lambda p=path: os.path.exists(p))
    named("access_" + name, lambda p=path: os.access(p, os.F_OK))
    named("readlink_" + name, lambda p=path: os.readlink(p))
    named("open_" + name, lambda p=path: opened(p))
    named("open_path_" + name, lambda p=path: opened(p, os.O_PATH))
named("realpath", lambda: run("realpath", "-e", SONG))
named("test_f", lambda: run("test", "-f", SONG))
named("test_s", lambda: run("test", "-s", PHOTO))
named("cat", lambda: run("cat", SONG))
named("name_to_handle", lambda: call(libc.name_to_handle_at, -100, SONG.encode(), ctypes.create_string_buffer(b"\x80\0\0\0" + 140 * b"\0"), ctypes.byref(ctypes.c_int()), 0))
named("make_directory_there", lambda: os.mkdir(LIBRARY))
named("make_photos_there", lambda: os.mkdir(PHOTOS))
named("create_exclusively", lambda: os.close(os.open(PHOTO, os.O_CREAT | os.O_EXCL | os.O_WRONLY)))
named("create_song_exclusively", lambda: os.close(os.open(SONG, os.O_CREAT | os.O_EXCL | os.O_WRONLY)))
named("symlink_over", lambda: os.symlink("x", PHOTO))
named("node_over", lambda: os.mkfifo(PHOTO))
named("link_into_own", lambda: os.link(PHOTO, OWN + "/tmp/hard"))
named("link_over", lambda: os.link(OWN + "/tmp/mine", PHOTO))
named("remove_directory", lambda: os.rmdir(PHOTO))
named("run", lambda: os.posix_spawn(SONG, [SONG], {}))
named("chdir", lambda: os.chdir(LIBRARY) or os.chdir("/"))
named("pathconf", lambda: os.pathconf(SONG, "PC_NAME_MAX"))
named("statfs_of_song", lambda: os.statvfs(SONG).f_namemax)
named("list_attributes", lambda: os.listxattr(SONG))
named("attribute", lambda: os.getxattr(PHOTO, "user.mark"))
named("attributes_of_place", lambda: (os.listxattr(PICTURES), [e.name for e in os.scandir(PICTURES)]))
named("disk_usage", lambda: shutil.disk_usage(SONG).total > 0)


@attempt
def watch():
    descriptor = call(libc.inotify_init1, 0o4000)
    try:
        return call(libc.inotify_add_watch, descriptor, SONG.encode(), 0xFFF) > 0
    finally:
        os.close(descriptor)


@attempt
def watch_photos():
    descriptor = call(libc.inotify_init1, 0o4000)
    try:
        return call(libc.inotify_add_watch, descriptor, PHOTOS.encode(), 0xFFF) > 0
    finally:
        os.close(descriptor)


@attempt
def map_it():
    with open(SONG, "rb") as file:
        return bytes(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))


@attempt
def send_it():
    with open(SONG, "rb") as file, open(OWN + "/tmp/sent", "wb") as target:
        return os.sendfile(target.fileno(), file.fileno(), 0, 100)


@attempt
def copy_range():
    with open(PHOTO, "rb") as file, open(OWN + "/tmp/sent", "wb") as target:
        return os.copy_file_range(file.fileno(), target.fileno(), 100)


@attempt
def lock_it():
    with open(SONG, "rb") as file:
        return fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


@attempt
def open_at():
    directory = os.open(MUSIC, os.O_PATH)
    try:
        return os.stat("Music/song", dir_fd=directory).st_size
    finally:
        os.close(directory)


@attempt
def flags_of_song():
    descriptor = os.open(SONG, os.O_RDONLY)
    try:
        return struct.unpack("i", fcntl.ioctl(descriptor, 0x80086601, struct.pack("i", 0)))
    finally:
        os.close(descriptor)


@attempt
def truncate_nothing():
    return os.truncate(PHOTO, os.stat(PHOTO).st_size)


@attempt
def touch():
    return os.utime(PHOTO)


@attempt
def change_mode():
    return os.chmod(PHOTO, 0o600)


@attempt
def temporary_file():
    descriptor = os.open(PHOTOS, os.O_TMPFILE | os.O_WRONLY, 0o600)
    return os.close(descriptor)


@attempt
def bind_a_socket():
    with within(PHOTOS), contextlib.closing(socket.socket(socket.AF_UNIX)) as made:
        made.bind("s")
        os.unlink("s")


@attempt
def rename_over():
    open(OWN + "/tmp/other", "w").close()
    return os.rename(PHOTO, PHOTO + "-2"), os.rename(PHOTO + "-2", PHOTO)


@attempt
def rename_library():
    return os.rename(PHOTOS + "/1", PHOTOS + "/1")


def main():
    open(OWN + "/tmp/mine", "w").close()
    shutil.rmtree(OWN + "/tmp/copy", ignore_errors=True)
    for name, body in attempts:
        try:
            outcome = ["got", repr(body())]
        except OSError as error:
            outcome = ["refused", errno.errorcode.get(error.errno, str(error.errno))]
        print(json.dumps([name, outcome]), flush=True)


main()
