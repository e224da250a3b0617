// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing
@testable internal import Volume

/// What an app's kernel has kept of listings is not shown any more when other names are in its view.
///
/// The times of a directory are the same then, and it is by these that the kernel tells.
@Suite(.enabled(if: Program.isRoot, "a tree of several users needs root"))
struct GrantedListingTests {
  private let tree: Tree
  private let view: View

  init() throws {
    tree = try Tree()
    for directory in ["from", "from/inner", "whole", "whole/inner"] {
      try tree.view.makeDirectory("Users/Shared/\(directory)", mode: 0o777)
    }
    for file in ["from/inner/seen", "from/inner/other", "whole/inner/seen"] {
      try tree.view.make("Users/Shared/\(file)", mode: 0o666)
    }
    let places = [
      ScopePlace("Users/Shared/from/inner/seen", [.read, .revocable], isSubtree: false),
      ScopePlace("Users/Shared/whole", [.read, .revocable]),
    ]
    view = try View(tree.volume, scope: Scope(places), user: 0)
    view.started(RecordingConnection(passthrough: false, canWithdraw: true))
  }

  private func keepsListing(_ node: NodeID) throws -> Bool {
    let opened = try view.openDirectory(node, by: .root)
    view.releaseDirectory(node, handle: opened.handle)
    return opened.mode.contains(.keepCache)
  }

  private static func path(_ name: String) -> [[UInt8]] {
    GrantPath.names(Array("Users/Shared/\(name)".utf8))
  }

  /// A directory that led to one file is a part of a folder that the app has as a whole.
  @Test func directoryThatIsMovedIntoAGrantedFolder() throws {
    let node = try view.node("Users/Shared/from/inner")
    _ = try keepsListing(node)
    #expect(try keepsListing(node))
    view.granted.follow([ScopeMove(old: Self.path("from/inner"), new: Self.path("whole/new"))])
    #expect(try !keepsListing(node))
    #expect(try keepsListing(node))
  }

  /// A directory that leads to one file more, or to one less.
  @Test func directoryThatLeadsElsewhere() throws {
    let node = try view.node("Users/Shared/from/inner")
    _ = try keepsListing(node)
    #expect(try keepsListing(node))
    view.granted.follow([ScopeMove(old: Self.path("from/inner/seen"), new: Self.path("from/inner/renamed"))])
    #expect(try !keepsListing(node))
    view.granted.admit(ScopePlace("Users/Shared/from/inner/other", [.read, .revocable], isSubtree: false))
    #expect(try !keepsListing(node))
    #expect(try keepsListing(node))
  }

  /// What is known below a directory has another position, and is found again by its name.
  @Test func directoryBelowOneThatWasTakenBack() throws {
    let node = try view.node("Users/Shared/whole/inner")
    _ = try keepsListing(node)
    #expect(try keepsListing(node))
    view.granted.withdraw(ScopePlace("Users/Shared/whole", [.read, .revocable]))
    view.granted.admit(ScopePlace("Users/Shared/whole/inner/seen", [.read, .revocable], isSubtree: false))
    let again = try view.node("Users/Shared/whole/inner")
    #expect(again == node)
    #expect(try !keepsListing(node))
  }
}
