#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
"""Makes a copy of Swift's runtime of which the linker may leave out what nothing uses: collectable.py SOURCE TARGET

The archive marks each function as one to be kept (SHF_GNU_RETAIN), whether anything refers to it or not; that is a
sixteenth of the program. The marks go from functions and constants alone: what is found by looking through a section
at run time (conformances, types) stays, with all that it refers to. TARGET is made only where it is missing, or older.
"""
import os
import pathlib
import struct
import sys

RETAIN = 0x200000
COLLECTABLE = (b".text", b".rodata", b".data")


def unmark(member):
    """Takes the marks from a 64-bit little-endian object file; gives how many there were."""
    if member[:6] != b"\x7fELF\x02\x01":
        return 0
    table, = struct.unpack_from("<Q", member, 0x28)
    size, count, names = struct.unpack_from("<HHH", member, 0x3A)
    # With very many sections the numbers are in the first one.
    if count == 0:
        count, = struct.unpack_from("<Q", member, table + 0x20)
    if names == 0xFFFF:
        names, = struct.unpack_from("<I", member, table + 0x28)
    text, = struct.unpack_from("<Q", member, table + names * size + 0x18)
    found = 0
    for number in range(count):
        header = table + number * size
        name, = struct.unpack_from("<I", member, header)
        flags, = struct.unpack_from("<Q", member, header + 8)
        if flags & RETAIN and bytes(member[text + name:text + name + 8]).startswith(COLLECTABLE):
            struct.pack_into("<Q", member, header + 8, flags & ~RETAIN)
            found += 1
    return found


def main():
    source, target = (pathlib.Path(path) for path in sys.argv[1:])
    if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
        return
    archive = bytearray(source.read_bytes())
    if archive[:8] != b"!<arch>\n":
        sys.exit(f"collectable.py: {source} is no archive")
    position = 8
    view = memoryview(archive)
    while position + 60 <= len(archive):
        size = int(archive[position + 48:position + 58])
        unmark(view[position + 60:position + 60 + size])
        position += 60 + size + size % 2
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_suffix(f".{os.getpid()}")
    beside.write_bytes(archive)
    beside.rename(target)


if __name__ == "__main__":
    main()
