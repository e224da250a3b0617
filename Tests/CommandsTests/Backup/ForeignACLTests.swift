// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// ACLs in a backup that are those of other files.
struct ForeignACLTests {
  private static let name = "user.com.apple.system.Security"

  private func set(_ owner: Principal?, on path: String) throws {
    let acl = AccessControlList([
      AccessControlEntry(.permit, .user(4711), .read, [])
    ])
    let bytes = acl.filesec(ownedBy: owner)
    let file = try FD.cwd.openFollowing(path, O_RDONLY)
    try file.fd.setAttribute(Self.name, to: bytes)
  }

  private func hasACL(_ path: String) -> Bool {
    guard let file = try? FD.cwd.openFollowing(path, O_RDONLY) else { return false }
    return (try? file.fd.attribute(Self.name, limit: 4096).isEmpty) == false
  }

  @Test func thoseOfOtherOwnersAreTakenOut() throws {
    let temporary = try TemporaryDirectory()
    try temporary.makeDirectory("tree")
    try temporary.makeDirectory("tree/d")
    for file in ["own", "strange", "silent", "none", "d/strange"] {
      try temporary.write("", to: "tree/\(file)")
    }
    func path(_ name: String) -> String { temporary.appending("tree/\(name)") }
    for file in ["own", "d"] { try set(.user(geteuid()), on: path(file)) }
    for file in ["strange", "d/strange"] { try set(.user(geteuid() + 1), on: path(file)) }
    try set(nil, on: path("silent"))
    try #require(symlink("own", path("link")) == 0)
    let tree = try FD.cwd.openFollowing(temporary.appending("tree"), O_RDONLY | O_DIRECTORY)
    let found = try ForeignACLs(removedFrom: tree.fd).removed
    #expect(found.count == 2 && Set(found.first) == ["strange", "d/strange"])
    for file in ["own", "d", "silent"] { #expect(hasACL(path(file)), "\(file)") }
    for file in ["strange", "d/strange", "none"] { #expect(!hasACL(path(file)), "\(file)") }
  }
}
