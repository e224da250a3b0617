// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

/// What the owner of one home has put in the way there is no matter of the others.
@Suite(.enabled(if: Program.isRoot)) struct NeighbouringHomesTests {
  @Test(arguments: ["nobody", "daemon"])
  func otherHomesGetWhatAnUpdateBrings(planted: String) throws {
    let fixture = try AppFixture()
    try Homes(tree: fixture.store.tree, path: fixture.tree, mode: .system).add("daemon")
    try fixture.bundle { $0.groups = ["group.one"] }
    let app = try fixture.install()
    for home in ["nobody", "daemon"] {
      _ = try Containers(fixture.store, fixture.registry).make(for: app, home: home)
    }
    let library = "\(fixture.tree)/Users/\(planted)/Library"
    let prize = try fixture.temporary.makeDirectory("prize")
    guard rename("\(library)/Group Containers", "\(library)/Elsewhere") == 0,
      symlink(prize, "\(library)/Group Containers") == 0
    else { throw Errno.last }

    try fixture.bundle {
      $0.version = "2"; $0.groups = ["group.one", "group.two"]
    }
    let failure = try #require(appFailure { try fixture.update() })
    guard case .containersNotMade = failure else {
      Issue.record("\(failure)")
      return
    }
    let other = planted == "daemon" ? "nobody" : "daemon"
    #expect(
      try fixture.names("Users/\(other)/Library/Group Containers").sorted() == ["group.one", "group.two"])
    #expect(try fixture.temporary.names(in: "prize") == [])
    #expect(try fixture.registry.apps().map(\.version) == ["2"])
  }
}
