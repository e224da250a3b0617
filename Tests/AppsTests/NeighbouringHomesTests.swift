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
    let house = try AppHouse()
    try Homes(tree: house.store.tree, path: house.tree, mode: .system).add("daemon")
    try house.bundle { $0.groups = ["group.one"] }
    let app = try house.install()
    for home in ["nobody", "daemon"] {
      _ = try Containers(house.store, house.registry).make(for: app, home: home)
    }
    let library = "\(house.tree)/Users/\(planted)/Library"
    let prize = try house.temporary.makeDirectory("prize")
    guard rename("\(library)/Group Containers", "\(library)/Elsewhere") == 0,
      symlink(prize, "\(library)/Group Containers") == 0
    else { throw Errno.last }

    try house.bundle {
      $0.version = "2"; $0.groups = ["group.one", "group.two"]
    }
    let failure = try #require(appFailure { try house.update() })
    guard case .containersNotMade = failure else {
      Issue.record("\(failure)")
      return
    }
    let other = planted == "daemon" ? "nobody" : "daemon"
    #expect(
      try house.names("Users/\(other)/Library/Group Containers").sorted() == ["group.one", "group.two"])
    #expect(try house.temporary.names(in: "prize") == [])
    #expect(try house.registry.apps().map(\.version) == ["2"])
  }
}
