// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import TestSupport
internal import Testing

/// What is written past the page cache is what is read and mapped from then on.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct StalePagesTests {
  /// Writes a file over and over, all of it at once by asynchronous O_DIRECT, while others read and map it;
  /// prints how many pages of the map, and of what read(2) gives, were not what had been written.
  private static let script = """
    import ctypes, mmap, os, signal, struct, sys
    setup, getevents, submit = {'x86_64': (206, 208, 209), 'aarch64': (0, 4, 2)}[os.uname().machine]
    path, rounds, page, pages, part = sys.argv[1], int(sys.argv[2]), 4096, 160, 8
    libc = ctypes.CDLL(None)
    with open(path, 'wb') as file: file.write(bytes(page * pages))
    file = open(path, 'rb', buffering=0)
    seen = mmap.mmap(file.fileno(), page * pages, mmap.MAP_SHARED, mmap.PROT_READ)
    readers = []
    for kind in 'map', 'map', 'read':
      readers.append(os.fork())
      if readers[-1] == 0:
        signal.alarm(120)
        while True:
          for at in range(0, page * pages, page): \
    seen[at] if kind == 'map' else os.pread(file.fileno(), 1, at)
    direct = os.open(path, os.O_RDWR | os.O_DIRECT)
    memory = mmap.mmap(-1, page * pages)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    count = pages // part
    blocks, context = [ctypes.create_string_buffer(64) for _ in range(count)], ctypes.c_ulong(0)
    assert libc.syscall(setup, count, ctypes.byref(context)) == 0
    stale = {'map': 0, 'read': 0}
    for turn in range(1, rounds + 1):
      memory[:] = struct.pack('<I', turn) * (page * pages // 4)
      for index, block in enumerate(blocks):
        at = index * part * page
        # struct iocb: data, key, flags, IOCB_CMD_PWRITE, \
    priority, file, buffer, length, offset, and what is not used.
        block.raw = struct.pack('<QIIHhIQQqQII', 0, 0, 0, 1, 0, direct, start + at, part * page, at, 0, 0, 0)
      submitted = (ctypes.c_void_p * count)(*[ctypes.addressof(block) for block in blocks])
      assert libc.syscall(submit, context, ctypes.c_long(count), submitted) == count
      events = ctypes.create_string_buffer(32 * count)
      assert libc.syscall(getevents, context, ctypes.c_long(count), \
    ctypes.c_long(count), events, None) == count
      assert all(result == part * page for _, _, result, _ in struct.iter_unpack('<QQqq', events.raw))
      # A read asks for the attributes, and so drops all pages of a file that has changed.
      kind = 'map' if turn % 2 else 'read'
      for at in range(0, page * pages, page):
        words = seen[at:at + 4] if kind == 'map' else os.pread(file.fileno(), 4, at)
        stale[kind] += struct.unpack('<I', words)[0] != turn
    for reader in readers: os.kill(reader, signal.SIGKILL)
    print(stale['map'], stale['read'])
    """

  @Test(arguments: DataWay.allCases)
  func asynchronousDirectWritesLeaveNoOldPages(way: DataWay) throws {
    let mounted = try way.mounted()
    let result = try way.python(Self.script, mounted.path("Users/Shared/file"), "200")
    #expect(result.output == "0 0\n", "\(result.output)\(result.errors)")
  }
}
