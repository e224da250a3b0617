// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing
@testable internal import Volume

/// What the places of containers forbid, in every operation.
@Suite struct ContainerPlaceTests {
  private let tree: Tree
  private var view: View { tree.view }
  private let container = "Users/anna/Library/Containers/com.x"
  private let parts = [
    "", "/Data", "/Data/Documents", "/Data/Library", "/Data/Library/Caches", "/Data/tmp",
  ]

  init() throws { tree = try Tree() }

  /// Makes a container as the daemon does: beside, then renamed behind the views, which know some of it
  /// already.
  private func make(_ name: String = "com.x") throws {
    if view.errno({ v throws(Errno) in try v.node("Users/anna") }) != nil {
      for path in ["Users/anna", "Users/anna/Library", "Users/anna/Library/Containers"] {
        try view.makeDirectory(path, by: .me)
      }
    }
    let beside = "Users/.container.new-1"
    for part in parts { try view.makeDirectory(beside + part, by: .me) }
    try view.make("\(beside)/\(ContainerLayout.metadataName)", by: .me)
    try view.at(beside + "/Data/X.app") { (name, parent) throws(Errno) in
      _ = try "../x".withName { (target) throws(Errno) in
        try view.makeSymlink(name, in: parent, to: target.bytes, by: .me)
      }
    }
    try place(beside, as: "Users/anna/Library/Containers/" + name)
  }

  /// Gives something its name as the daemon does.
  private func place(_ beside: String, as path: String) throws {
    let (above, name) = path.splitAtName
    let (from, old) = beside.splitAtName
    let root = try tree.temporary.open()
    let source = try root.fd.openDirectory(at: from)
    let target = try root.fd.openDirectory(at: above)
    try tree.volume.changeNames(in: target.fd) { () throws(Errno) in
      try source.fd.rename(old, to: target.fd, name, flags: 0)
    }
  }

  /// Whoever has it open, as a directory or as what they work in, changes it no more either.
  @Test func whatIsDeliveredIsClosedToWhoeverHasItOpen() throws {
    try make()
    let inbox = container + "/Data/Documents/Inbox"
    #expect(mkdir(tree.path(inbox), 0o700) == 0)
    for name in ["parcel", "parcel/inner"] { try view.makeDirectory("Users/Shared/" + name, by: .me) }
    try view.make("Users/Shared/parcel/inner/file", by: .me)
    let directories = try ["parcel", "parcel/inner"].map { try view.node("Users/Shared/" + $0, by: .me) }
    let file = try view.node("Users/Shared/parcel/inner/file", by: .me)
    let opened = try directories.map { try view.openDirectory($0, by: .me) }
    let source = try TemporaryDirectory.open(tree.path("Users/Shared"))
    let target = try TemporaryDirectory.open(tree.path(inbox))
    try "parcel".withName { (name) throws(Errno) in
      try tree.volume.deliver(name, from: source.fd, to: target.fd) { () throws(Errno) in
        try source.fd.rename(name, to: target.fd, name, flags: 0)
      }
    }
    var change = AttributeChange()
    change.mode = 0o755
    for (node, handle) in zip(directories, opened.map(\.handle)) {
      expect(
        .EPERM,
        { v throws(Errno) in
          _ = try "new".withName { (name) throws(Errno) in
            try v.makeDirectory(name, in: node, mode: 0o755, by: .me)
          }
        }, "mkdir in what was delivered")
      expect(
        .EPERM,
        { v throws(Errno) in _ = try v.setAttributes(of: node, handle: handle, to: change, by: .me) },
        "fchmod of what was delivered")
      view.releaseDirectory(node, handle: handle)
    }
    expect(
      .EPERM, { v throws(Errno) in _ = try v.setAttributes(of: file, handle: nil, to: change, by: .me) },
      "chmod of a file in what was delivered")
    expect(
      .EPERM,
      { v throws(Errno) in _ = try v.open(file, flags: O_WRONLY, clearsSetID: false, by: .me) },
      "write to a file in what was delivered")
  }

  private func expect(_ expected: Errno?, _ body: (View) throws(Errno) -> Void, _ words: String) {
    #expect(view.errno(body) == expected, "\(words)")
  }

  /// Tries all that would change the fixed names and things.
  private func expectClosed(_ container: String) throws {
    let fixtures = ["/\(ContainerLayout.metadataName)", "/Data/X.app"]
    for directory in ["", "/Data"].map({ container + $0 }) {
      expect(.EPERM, { v throws(Errno) in try v.make(directory + "/new") }, "make a file in \(directory)")
      expect(.EPERM, { v throws(Errno) in try v.makeDirectory(directory + "/new") }, "mkdir in \(directory)")
      expect(
        .EPERM, { v throws(Errno) in try v.rename("Users/Shared/mine", to: directory + "/new") },
        "move into \(directory)")
      expect(
        .EPERM,
        { v throws(Errno) in
          let file = try v.node("Users/Shared/mine")
          try v.at(directory + "/new") { (name, parent) throws(Errno) in
            _ = try v.link(file, as: name, in: parent, by: .me)
          }
        }, "link into \(directory)")
      expect(
        .EPERM,
        { v throws(Errno) in
          _ = try v.createUnnamed(in: try v.node(directory), flags: O_RDWR, mode: 0o600, by: .me)
        }, "make an unnamed file in \(directory)")
    }
    for name in ["/Data", "/Data/Documents", "/Data/Library", "/Data/tmp"] + fixtures {
      let path = container + name
      let isDirectory = !fixtures.contains(name)
      expect(.EPERM, { v throws(Errno) in try v.remove(path, directory: isDirectory) }, "remove \(path)")
      expect(
        .EPERM, { v throws(Errno) in try v.rename(path, to: "Users/Shared/away") }, "move \(path) away")
      expect(.EPERM, { v throws(Errno) in try v.rename(path, to: path + "2") }, "rename \(path)")
      expect(
        .EPERM, { v throws(Errno) in try v.rename("Users/Shared/\(isDirectory ? "dir" : "mine")", to: path) },
        "replace \(path)")
      expect(
        .EPERM, { v throws(Errno) in try v.rename("Users/Shared/mine", to: path, flags: 2) },
        "exchange \(path)")
    }
    for fixture in fixtures {
      let path = container + fixture
      expect(
        .EPERM,
        { v throws(Errno) in
          try v.change(path) {
            $0.modification = .now; $0.access = .now
          }
        }, "touch \(path)")
      expect(.EPERM, { v throws(Errno) in try v.change(path) { $0.uid = 7 } }, "chown \(path)")
      expect(
        .EPERM,
        { v throws(Errno) in
          let node = try v.node(path)
          try v.at("Users/Shared/alias") { (name, parent) throws(Errno) in
            _ = try v.link(node, as: name, in: parent, by: .me)
          }
        }, "link to \(path)")
    }
    let metadata = container + fixtures[0]
    expect(.EPERM, { v throws(Errno) in try v.change(metadata) { $0.size = 0 } }, "truncate")
    expect(.EPERM, { v throws(Errno) in try v.change(metadata) { $0.mode = 0o777 } }, "chmod")
    expect(
      .EPERM,
      { v throws(Errno) in _ = try v.open(try v.node(metadata), flags: O_WRONLY, clearsSetID: false, by: .me)
      },
      "open for writing")
    expect(.EPERM, { v throws(Errno) in try v.access(try v.node(metadata), mask: W_OK, by: .me) }, "access")
    for attribute in ["user.x", "trusted.x", "system.insula.flags", "system.insula.acl"] {
      expect(
        .EPERM,
        { v throws(Errno) in
          try withBytes("uchg") { (bytes) throws(Errno) in
            let node = try v.node(metadata)
            try attribute.withName { (name) throws(Errno) in
              try v.setAttribute(name, of: node, to: bytes, flags: 0, by: .me)
            }
          }
        }, "set \(attribute)")
    }
    // What is inside is the app's.
    for directory in ["/Data/Documents", "/Data/Library", "/Data/Library/Caches", "/Data/tmp"] {
      let path = container + directory
      expect(nil, { v throws(Errno) in try v.make(path + "/file") }, "make a file in \(path)")
      expect(
        nil, { v throws(Errno) in try v.rename(path + "/file", to: path + "/other") }, "rename in \(path)")
      expect(nil, { v throws(Errno) in try v.remove(path + "/other") }, "remove in \(path)")
    }
  }

  @Test(arguments: [false, true]) func namesOfAContainerAreFixed(isKnown: Bool) throws {
    try make()
    try view.make("Users/Shared/mine", by: .me)
    try view.makeDirectory("Users/Shared/dir", by: .me)
    if isKnown { for part in parts { try view.find(container + part) } }
    try expectClosed(container)
  }

  @Test(arguments: [false, true]) func whatIsKnownGetsItsZoneWhenAHomeComes(handles: Bool) throws {
    guard Program.isRoot else { return Skip.say("homes are made by root") }
    let tree = try Tree { $0.fileHandles = handles }
    let test = try ContainerPlaceTests(tree)
    try test.make()
    try test.view.make("Users/Shared/mine")
    try test.view.makeDirectory("Users/Shared/dir")
    let document = try test.view.make("\(container)/Data/Documents/file")
    let link = try test.view.node("\(container)/Data/X.app")
    let data = try test.view.node("\(container)/Data")
    func zones() throws -> [Zone] {
      try [document, link, data].map { try test.view.nodes.reference(to: $0).zone }
    }
    #expect(try zones() == [.user, .containerFixture, .containerData])
    // No home any more: nothing in it is a container's.
    try test.view.rename("Users/anna", to: "Users/Shared/anna")
    #expect(try zones() == [.user, .user, .user])
    try test.view.make("Users/Shared/anna/Library/Containers/com.x/Data/new")
    try test.view.remove("Users/Shared/anna/Library/Containers/com.x/Data/new")
    // And again, under another name, the kernel knowing all of it still.
    try test.view.rename("Users/Shared/anna", to: "Users/bert")
    #expect(try zones() == [.user, .containerFixture, .containerData])
    try test.expectClosed("Users/bert/Library/Containers/com.x")
    // Neither it nor what leads to it goes anywhere without the home.
    for path in ["Library", "Library/Containers", "Library/Containers/com.x"] {
      for target in ["Users/bert/Old", "Users/bert/Library/Containers/.com.x", "Users/Shared/moved"] {
        test.expect(.EPERM, { v throws(Errno) in try v.rename("Users/bert/" + path, to: target) }, path)
      }
      test.expect(
        .EPERM, { v throws(Errno) in try v.rename("Users/bert/" + path, to: "Users/Shared/dir", flags: 2) },
        "exchange \(path)")
      test.expect(
        .EPERM, { v throws(Errno) in try v.rename("Users/Shared/dir", to: "Users/bert/" + path, flags: 2) },
        "exchange with \(path)")
    }
    #expect(try zones() == [.user, .containerFixture, .containerData])
  }

  /// Whoever could put a directory where containers are could write what describes it, or fill its Inbox.
  @Test(arguments: ContainerKind.allCases) func nobodyMakesContainers(kind: ContainerKind) throws {
    let containers = "Users/anna/\(ContainerLayout.directory(of: kind))"
    for path in ["Users/anna", "Users/anna/Library", containers, containers + "/.beside", "Users/Shared/dir"]
    {
      try view.makeDirectory(path, by: .me)
    }
    try view.make(containers + "/.file", by: .me)
    for caller in [Caller.me, .root] {
      expect(.EPERM, { v throws(Errno) in try v.makeDirectory(containers + "/x", by: caller) }, "mkdir")
      for source in [containers + "/.beside", "Users/Shared/dir"] {
        expect(.EPERM, { v throws(Errno) in try v.rename(source, to: containers + "/x") }, "move \(source)")
      }
    }
    // What is no directory is no container, and what has another name is none either.
    expect(nil, { v throws(Errno) in try v.rename(containers + "/.file", to: containers + "/file") }, "file")
    expect(
      nil, { v throws(Errno) in try v.rename(containers + "/.beside", to: containers + "/.b") }, "beside")
    expect(nil, { v throws(Errno) in try v.makeDirectory(containers + "/.new") }, "make beside")
  }

  private init(_ tree: Tree) throws { self.tree = tree }

  @Test func groupsContainerIsItsMembersSaveForWhatDescribesIt() throws {
    for path in ["Users/anna", "Users/anna/Library", "Users/anna/Library/Group Containers"] {
      try view.makeDirectory(path, by: .me)
    }
    try view.makeDirectory("Users/.container.new-1", by: .me)
    try view.make("Users/.container.new-1/\(ContainerLayout.metadataName)", by: .me)
    let group = "Users/anna/Library/Group Containers/group.x"
    try place("Users/.container.new-1", as: group)
    let metadata = "\(group)/\(ContainerLayout.metadataName)"
    expect(nil, { v throws(Errno) in try v.make(group + "/file") }, "make")
    expect(.EPERM, { v throws(Errno) in try v.rename(group + "/file", to: metadata) }, "replace")
    expect(.EPERM, { v throws(Errno) in try v.remove(metadata) }, "remove")
    expect(.EPERM, { v throws(Errno) in try v.change(metadata) { $0.size = 0 } }, "truncate")
    expect(nil, { v throws(Errno) in try v.remove(group + "/file") }, "remove a member's")
  }
}
