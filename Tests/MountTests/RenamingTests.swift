// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Renames on a filesystem that knows no flags of renameat2, as the clients of clusters and of sftp servers.
@Suite(.enabled(if: SFTPMount.isPossible, "needs root, /dev/fuse, sshfs and openssh-sftp-server"))
struct RenamingTests {
  private static let keeping = UInt32(CLX_RENAME_NOREPLACE)
  private static let exchange = UInt32(CLX_RENAME_EXCHANGE)

  @Test func otherCallsKeepTheirPromises() throws {
    let mounted = try SFTPMount()
    let directory = try FD.cwd.open(mounted.point, O_RDONLY | O_DIRECTORY)
    let place = directory.fd
    #expect(!place.knowsRenameFlags)
    let plain = try TemporaryDirectory.open(mounted.temporary.appending("behind"))
    #expect(plain.fd.knowsRenameFlags)
    for name in ["a", "b"] { try mounted.temporary.write(name, to: "behind/\(name)") }
    for name in ["d", "e"] { try place.makeDirectory(name, mode: 0o755) }
    try mounted.temporary.write("inside", to: "behind/d/x")
    func text(_ path: String) -> String? { mounted.temporary.text(of: "behind/\(path)") }
    // What is there stays.
    for (old, new) in [("a", "b"), ("d", "e"), ("a", "d"), ("d", "a")] {
      #expect(throws: Errno.EEXIST) { try place.rename(old, to: place, new, flags: Self.keeping) }
    }
    #expect(text("a") == "a" && text("b") == "b" && text("d/x") == "inside")
    try place.rename("a", to: place, "c", flags: Self.keeping)
    try place.rename("d", to: place, "f", flags: Self.keeping)
    #expect(text("a") == nil && text("c") == "a" && text("f/x") == "inside")
    // What changes places does so whole.
    try place.rename("c", to: place, "b", flags: Self.exchange)
    try place.rename("f", to: place, "b", flags: Self.exchange)
    #expect(text("c") == "b" && text("f") == "a" && text("b/x") == "inside")
    #expect(throws: Errno.ENOENT) { try place.rename("c", to: place, "none", flags: Self.exchange) }
    #expect(throws: Errno.ENOENT) { try place.rename("none", to: place, "c", flags: Self.exchange) }
    let inside = try place.openDirectory("b")
    #expect(throws: (any Error).self) { try place.rename("b", to: inside.fd, "x", flags: Self.exchange) }
    let names = try plain.fd.entries().map { String(decoding: $0.name, as: UTF8.self) }.sorted()
    #expect(names == ["b", "c", "e", "f"], "\(names)")
    #expect(text("b/x") == "inside")
  }

  /// A store can be made there, and be used.
  @Test func storesCanBeMadeThere() throws {
    let mounted = try SFTPMount()
    let made = try Program.run([Program.insula, "init", "\(mounted.point)/store"])
    #expect(made.status == 0, "\(made.errors)")
    let checked = try Program.run([Program.insula, "doctor", mounted.point])
    #expect(checked.output.contains("renames: names can't be exchanged"), "\(checked.output)")
  }
}
