// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// As long as nobody has looked into a home which apps there are, whatever lies where apps do may be one.
@Suite struct UnnotedHomeTests {
  private func tree() throws -> Tree {
    let tree = try Tree()
    for home in ["anna", "ben"] {
      try tree.view.makeDirectory("Users/\(home)")
      try tree.view.makeDirectory("Users/\(home)/Applications")
      try tree.view.makeDirectory("Users/\(home)/Documents")
      // From behind: no kernel knows anything of these.
      for name in ["X.app", "Later.app"] {
        try tree.temporary.makeDirectory("Users/\(home)/Applications/\(name)")
      }
    }
    return tree
  }

  private func failure(_ tree: Tree, _ path: String) -> Errno? {
    tree.view.errno { v throws(Errno) in try v.make(path) }
  }

  @Test func whatMayBeAnAppIsReadOnlyUntilItIsNoted() throws {
    let tree = try tree()
    // Two of them, and one is done.
    tree.volume.beginNotingApps()
    tree.volume.beginNotingApps()
    tree.volume.appsAreNoted(inHome: "ben", isLate: false)
    let app = "Users/anna/Applications/X.app"
    #expect(failure(tree, "\(app)/file") == .EROFS)
    for (old, new) in [(app, "Users/anna/Documents/Y.app"), ("Users/anna/Applications", "Users/anna/Other")] {
      #expect(tree.view.errno { v throws(Errno) in try v.rename(old, to: new) } != nil, "\(old)")
    }
    #expect(failure(tree, "Users/anna/Documents/file") == nil)
    #expect(failure(tree, "Users/ben/Applications/X.app/file") == nil)
    tree.volume.appsAreNoted(inHome: "anna", isLate: true)
    // What was found before that stays as it is as long as a kernel knows it.
    #expect(failure(tree, "\(app)/file") == .EROFS)
    #expect(failure(tree, "Users/anna/Applications/Later.app/file") == nil)
  }

  @Test func aHomeWithoutADirectoryForThemIsNotedToo() throws {
    let tree = try tree()
    tree.volume.beginNotingApps()
    #expect(failure(tree, "Users/ben/Applications/X.app/file") == .EROFS)
    tree.volume.appsAreNoted(inHome: "none", isLate: true)
    #expect(failure(tree, "Users/ben/Applications/Later.app/file") == nil)
  }
}
