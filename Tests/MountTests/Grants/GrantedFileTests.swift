// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A file that both its user and an app write to, on real mounts.
@Suite(.serialized, .enabled(if: Program.isRoot, "mounting takes root"))
struct GrantedFileTests {
  /// Another view's having changed it is noted of a file, and that it is shared memory of a database: neither
  /// may pass for the other.
  @Test(arguments: [false, true]) func bothWriteInTurn(rootless: Bool) throws {
    let house = try GrantedMounts(rootless: rootless)
    try house.makeDirectories("a")
    try house.write("0", to: house.all("a/letter"))
    try house.grant("a/letter")
    for turn in 1...4 {
      try house.write("\(turn) of the user", to: house.all("a/letter"))
      try house.write("\(turn) of the app", to: house.own("a/letter"))
      #expect(house.text(house.all("a/letter")) == "\(turn) of the app")
      #expect(house.text(house.own("a/letter")) == "\(turn) of the app")
    }
  }

  @Test func sharedMemoryStaysRefusedWhenOthersHaveChangedIt() throws {
    let house = try GrantedMounts()
    try house.makeDirectories("a")
    try house.write("0", to: house.all("a/db-shm"))
    try house.grant("a")
    let path = house.own("a/db-shm")
    for _ in 0..<3 {
      try house.write("more", to: house.all("a/db-shm"))
      #expect(house.text(path) == "more")
      #expect(open(path, O_RDWR | O_CLOEXEC) == -1 && Errno.last == .EPERM)
    }
  }
}
