// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import TestSupport
internal import Testing

/// What the kernel keeps of the files of an encrypted volume, and what becomes of it when that is locked.
@Suite(
  .enabled(if: EncryptedFixture.isPossible, "mounting needs root, /dev/fuse and gocryptfs"),
  .mayTake(seconds: 300))
struct LockedContentsTests {
  /// `map FILE SCRIPT` stores a byte in each of 256 pages of a file through a map, while `FILE.read` is open
  /// and has been read.
  ///
  /// After the script it prints of both how many pages are in memory, and what reading the second one gives.
  private static let map = """
    map() {
      head -c 1048576 /dev/zero >"$1.read"
      timeout 60 /usr/bin/python3 - "$@" <<'END'
    import ctypes, mmap, os, subprocess, sys
    path, script = sys.argv[1:]
    size = 256 * 4096
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    def pages(memory):
        there = ctypes.create_string_buffer(256)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        if libc.mincore(address, size, there): return os.strerror(ctypes.get_errno())
        return sum(byte & 1 for byte in there.raw)
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(file, size)
    stored = mmap.mmap(file, size)
    other = os.open(path + ".read", os.O_RDWR)
    read = mmap.mmap(other, size)
    # Before anything is stored: a child that closes the file has it written.
    child = subprocess.Popen(["sh", "-c", "read go; " + script], stdin=subprocess.PIPE)
    for page in range(256): read[page * 4096]; stored[page * 4096] = 0x41
    print(pages(stored), pages(read), flush=True)
    child.communicate(b"go\\n")
    assert child.returncode == 0
    print(pages(stored), pages(read))
    try: print(len(os.pread(other, 4096, 0)))
    except OSError as error: print(error.strerror)
    sys.stdout.flush(); os._exit(0)
    END
    }
    """

  /// What was stored through a map is kept, and nothing of it stays in the kernel's memory.
  @Test(arguments: [false, true])
  func whatWasStoredIsWrittenAndForgotten(rootless: Bool) throws {
    let fixture = try EncryptedFixture(rootless: rootless)
    try fixture.expect(
      """
      \(Self.map)
      create Private
      map $V/Private/x "'$INSULA' volume lock Private --force --store '$POINT' >/dev/null"
      unlock Private; tr -dc A <$V/Private/x | wc -c
      """, "256 256\n0 0\nInput/output error\n256\n")
  }

  /// If somebody ends the program, nothing more can be written; but nothing is left to be read either.
  @Test func nothingStaysOfOneWhoseProgramEnds() throws {
    let fixture = try EncryptedFixture()
    try fixture.expect("create Private", "")
    let program = try #require(try fixture.programs().first)
    try fixture.expect(
      """
      \(Self.map)
      map $V/Private/x "kill -KILL \(program)
        timeout 20 sh -c 'until ls $V/Private 2>&1 | grep -q key; do sleep .1; done'; sleep .2"
      """, "256 256\n0 0\nInput/output error\n")
  }
}
