// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A mount is taken away by what it is: its path may lead elsewhere by then.
@Suite(.enabled(if: Program.isRoot, "mounts need root")) struct UnmountTests {
  private let temporary: TemporaryDirectory
  /// What is to be taken away, as a table has shown it.
  private let entry: MountEntry
  private let decoy: MountEntry

  init() throws {
    temporary = try TemporaryDirectory()
    for name in ["d", "d/m", "decoy", "decoy/m"] { try temporary.makeDirectory(name) }
    for name in ["d/m", "decoy/m"] {
      guard mount("tmpfs", temporary.appending(name), "tmpfs", 0, nil) == 0 else { throw Errno.last }
    }
    let table = try MountTable.current()
    entry = try #require(table.top(at: temporary.appending("d/m")))
    decoy = try #require(table.top(at: temporary.appending("decoy/m")))
  }

  private func isMounted(_ entry: MountEntry) throws -> Bool {
    try MountTable.current().entries.contains { $0.id == entry.id }
  }

  private func error(_ body: () throws -> Void) -> Errno? {
    do {
      try body()
      return nil
    } catch {
      return error as? Errno
    }
  }

  private func exchange(_ name: String, with other: String) throws {
    guard rename(temporary.appending(name), temporary.appending("was")) == 0,
      rename(temporary.appending(other), temporary.appending(name)) == 0
    else { throw Errno.last }
  }

  @Test(arguments: [false, true]) func itGoesAlone(lazily: Bool) throws {
    try entry.unmount(lazily: lazily)
    #expect(try !isMounted(entry) && isMounted(decoy))
    #expect(error { try entry.unmount(lazily: lazily) } == .EINVAL)
  }

  @Test(arguments: [false, true]) func linkInItsPathIsNotFollowed(lazily: Bool) throws {
    guard symlink("decoy", temporary.appending("link")) == 0 else { throw Errno.last }
    try exchange("d", with: "link")
    #expect(error { try entry.unmount(lazily: lazily) } == .ELOOP)
    #expect(try isMounted(entry) && isMounted(decoy))
  }

  @Test(arguments: [false, true]) func linkInItsPlaceIsNotFollowed(lazily: Bool) throws {
    try temporary.makeDirectory("other")
    guard symlink("../decoy/m", temporary.appending("other/m")) == 0 else { throw Errno.last }
    try exchange("d", with: "other")
    #expect(error { try entry.unmount(lazily: lazily) } != nil)
    #expect(try isMounted(entry) && isMounted(decoy))
  }

  @Test(arguments: [false, true]) func anotherMountInItsPlaceStays(lazily: Bool) throws {
    try exchange("d", with: "decoy")
    #expect(error { try entry.unmount(lazily: lazily) } == .EINVAL)
    #expect(error { try MountTable.unmount(entry.device, at: decoy.mountPoint, lazily: lazily) } == .EINVAL)
    #expect(try isMounted(entry) && isMounted(decoy))
  }

  private func isReadOnly(_ entry: MountEntry) throws -> Bool? {
    try MountTable.current().entries.first { $0.id == entry.id }?.options.split(separator: ",").contains("ro")
  }

  @Test func itsFlagsAloneAreChanged() throws {
    try entry.remount(flags: UInt(MS_RDONLY))
    #expect(try isReadOnly(entry) == true && isReadOnly(decoy) == false)
    try entry.remount(flags: 0)
    #expect(try isReadOnly(entry) == false)
  }

  @Test(arguments: ["link above", "link", "mount", "over"]) func flagsOfNoOtherAreChanged(inItsPlace: String)
    throws
  {
    switch inItsPlace {
    case "link above":
      guard symlink("decoy", temporary.appending("link")) == 0 else { throw Errno.last }
      try exchange("d", with: "link")
      #expect(error { try entry.remount(flags: UInt(MS_RDONLY)) } == .ELOOP)
    case "link":
      try temporary.makeDirectory("other")
      guard symlink("../decoy/m", temporary.appending("other/m")) == 0 else { throw Errno.last }
      try exchange("d", with: "other")
      #expect(error { try entry.remount(flags: UInt(MS_RDONLY)) } != nil)
    case "mount":
      try exchange("d", with: "decoy")
      #expect(error { try entry.remount(flags: UInt(MS_RDONLY)) } == .EINVAL)
    default:
      guard mount("tmpfs", entry.mountPoint, "tmpfs", 0, nil) == 0 else { throw Errno.last }
      #expect(error { try entry.remount(flags: UInt(MS_RDONLY)) } == .EINVAL)
    }
    #expect(try isReadOnly(entry) == false && isReadOnly(decoy) == false)
  }

  @Test func whatLiesOverItStays() throws {
    guard mount("tmpfs", entry.mountPoint, "tmpfs", 0, nil) == 0 else { throw Errno.last }
    for lazily in [false, true] { #expect(error { try entry.unmount(lazily: lazily) } == .EINVAL) }
    #expect(try isMounted(entry))
  }

  @Test func oneThatIsUsedGoesOnlyLazily() throws {
    let held = try TemporaryDirectory.open(entry.mountPoint)
    #expect(error { try entry.unmount(lazily: false) } == .EBUSY)
    #expect(try isMounted(entry))
    try entry.unmount(lazily: true)
    let isUsable = try held.fd.status().isDirectory
    #expect(try isUsable && !isMounted(entry))
  }
}
