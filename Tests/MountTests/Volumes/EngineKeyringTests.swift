// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What serves a volume is a user's own program, as ssh's ProxyCommand is.
@Suite(
  .enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"),
  .enabled(
    if: access("/usr/bin/sshfs", X_OK) == 0 && access("/usr/sbin/sshd", X_OK) == 0,
    "sshfs and sshd are not installed"),
  .mayTake(seconds: 240))
struct EngineKeyringTests {
  /// Numbers of add_key(2) and keyctl(2), for this machine's architecture.
  private static let calls = """
    import ctypes, platform, sys
    add_key, keyctl = {"x86_64": (248, 250)}.get(platform.machine(), (217, 219))
    call = ctypes.CDLL(None, use_errno=True).syscall
    """
  /// Starts a program in a session that has a key.
  private static let session = """
    \(calls)
    import os
    assert call(keyctl, 1, None) > 0
    assert call(add_key, b"user", b"decoy of root", b"decoy", 5, -3) > 0
    os.execv(sys.argv[1], sys.argv[1:])
    """
  /// Prints what the session's keyring has.
  private static let look = """
    \(calls)
    def names(keyring):
        buffer = ctypes.create_string_buffer(65536)
        count = call(keyctl, 11, keyring, buffer, 65536)
        for place in range(0, max(count, 0), 4):
            key = int.from_bytes(buffer.raw[place:place + 4], "little", signed=True)
            words = ctypes.create_string_buffer(4096)
            if call(keyctl, 6, key, words, 4096) > 0:
                yield words.value.decode()
                if words.value.startswith(b"keyring"): yield from names(key)
    print("keys:", *names(call(keyctl, 0, -3, 1)), file=open(sys.argv[1], "w"))
    """

  /// Starts a program that may use no keys, as insula.service (`SystemCallFilter=~@keyring`).
  private static let service = """
    \(calls)
    import os, struct
    def word(code, equal, other, value): return struct.pack("HBBI", code, equal, other, value)
    program = word(0x20, 0, 0, 0)
    for number in add_key, keyctl - 1, keyctl:
        program += word(0x15, 0, 1, number) + word(0x06, 0, 0, 0x50001)
    program += word(0x06, 0, 0, 0x7fff0000)
    buffer = ctypes.create_string_buffer(program)
    filter = struct.pack("H6xQ", len(program) // 8, ctypes.addressof(buffer))
    prctl = ctypes.CDLL(None).prctl
    assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, filter) == 0
    os.execv(sys.argv[1], sys.argv[1:])
    """

  /// What a user's program for a volume finds in its session's keyring, if it is started at all; the daemon
  /// is started by a script.
  private func keys(startedBy script: String, _ served: ServerVolumeTests.Served) throws -> String? {
    let (mounted, temporary) = (served.run.mounted, served.run.mounted.temporary)
    try #require(try mounted.unmount().ending == .ok)
    let start = try temporary.write(script, to: "start.py")
    let started = try Program.run([
      "python3", start, Program.insula, "mount", mounted.store, mounted.point,
    ])
    try #require(started.ending == .ok, "\(started)")
    let look = try temporary.write(Self.look, to: "account/look.py")
    let output = "\(served.directory)/keys"
    try temporary.write(
      "Host kept\nProxyCommand /usr/bin/python3 \(look) \(output)\n", to: "account/.ssh/config")
    #expect(chmod(look, 0o644) == 0 && chmod(temporary.appending("account/.ssh/config"), 0o644) == 0)
    let refused = try served.shell("volume add sftp://kept/x", as: served.run.user)
    #expect(refused.ending == .failed, "\(refused)")
    return FD.text(of: output, limit: 1 << 16)
  }

  @Test func rootsSessionIsNotTheUsers() throws {
    let served = try ServerVolumeTests.Served()
    let temporary = served.run.mounted.temporary
    let keys = try #require(try keys(startedBy: Self.session, served))
    #expect(keys.hasPrefix("keys:") && !keys.contains("decoy"), "\(keys)")
    // Root's own programs are in that session.
    let own = try Program.run([
      "python3", temporary.appending("start.py"), "/usr/bin/python3", temporary.appending("account/look.py"),
      temporary.appending("own"),
    ])
    #expect(own.ending == .ok && temporary.text(of: "own")?.contains("decoy of root") == true, "\(own)")
  }

  /// There the program can't use keys either.
  @Test func aServiceWithoutKeysServesToo() throws {
    #expect(try keys(startedBy: Self.service, ServerVolumeTests.Served()) == "keys:\n")
  }
}
