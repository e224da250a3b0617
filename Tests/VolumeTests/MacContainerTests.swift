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

/// Names with a dot at the top of an app's home: the app's own where it has a Mac's shape.
@Suite struct MacContainerTests {
  private static let container = "Users/anna/Library/Containers/com.x"
  private static let data = container + "/Data"

  /// A tree with a container, of which nothing is known yet.
  private func tree(handles: Bool = true, isMac: Bool) throws -> Tree {
    let tree = try Tree { $0.fileHandles = handles }
    var path = "Users"
    for name in ["anna", "Library", "Containers", "com.x", "Data"] {
      path += "/" + name
      #expect(mkdir(tree.path(path), 0o755) == 0)
    }
    for name in ContainerLayout.dataDirectories { #expect(mkdir(tree.path("\(path)/\(name)"), 0o755) == 0) }
    if isMac { tree.volume.noteMacContainers(at: [Self.container]) }
    return tree
  }

  private func expect(
    _ expected: Errno?, _ tree: Tree, _ words: String, _ body: (View) throws(Errno) -> Void
  ) {
    #expect(tree.view.errno(body) == expected, "\(words)")
  }

  /// Tries all ways in which something gets the name `name` at the top; what came is removed again.
  private func expectNew(_ name: String, _ expected: Errno?, in tree: Tree) throws {
    let path = "\(Self.data)/\(name)"
    func gone(directory: Bool = false) {
      if expected == nil {
        expect(nil, tree, "remove \(name)") { v throws(Errno) in try v.remove(path, directory: directory) }
      }
    }
    expect(expected, tree, "create \(name)") { v throws(Errno) in try v.make(path) }
    gone()
    expect(expected, tree, "mkdir \(name)") { v throws(Errno) in try v.makeDirectory(path) }
    gone(directory: true)
    expect(expected, tree, "symlink \(name)") { v throws(Errno) in
      try v.at(path) { (name, parent) throws(Errno) in
        _ = try "x".withName { (target) throws(Errno) in
          try v.makeSymlink(name, in: parent, to: target.bytes, by: .root)
        }
      }
    }
    gone()
    expect(expected, tree, "mkfifo \(name)") { v throws(Errno) in
      try v.at(path) { (name, parent) throws(Errno) in
        _ = try v.makeNode(name, in: parent, mode: S_IFIFO | 0o600, device: 0, by: .root)
      }
    }
    gone()
    let file = "\(Self.data)/Documents/file"
    try tree.view.make(file)
    expect(expected, tree, "link \(name)") { v throws(Errno) in
      let node = try v.node(file)
      try v.at(path) { (name, parent) throws(Errno) in
        _ = try v.link(node, as: name, in: parent, by: .root)
      }
    }
    gone()
    expect(expected, tree, "move to \(name)") { v throws(Errno) in try v.rename(file, to: path) }
    // What is there may leave.
    if expected == nil { try tree.view.rename(path, to: file) }
    try tree.view.remove(file)
    let directory = "\(Self.data)/tmp/directory"
    try tree.view.makeDirectory(directory)
    expect(expected, tree, "move a directory to \(name)") { v throws(Errno) in
      try v.rename(directory, to: path)
    }
    if expected == nil { try tree.view.rename(path, to: directory) }
    try tree.view.remove(directory, directory: true)
  }

  @Test(arguments: [false, true], [false, true])
  func namesWithADotAreTheAppsInAMacsShape(isMac: Bool, handles: Bool) throws {
    let tree = try tree(handles: handles, isMac: isMac)
    for name in [".vimrc", ".config", "..x", ".com.apple", ".\u{e9}", ".new.app"] {
      try expectNew(name, isMac ? nil : .EPERM, in: tree)
    }
    for name in ["vimrc", "X.app", ContainerLayout.metadataName, ".com.apple.", "Inbox", " .x"] {
      try expectNew(name, .EPERM, in: tree)
    }
    // At the top of the container itself nothing is the app's.
    expect(.EPERM, tree, "a name beside Data") { v throws(Errno) in try v.make("\(Self.container)/.x") }
    expect(.EPERM, tree, "a file without a name") { v throws(Errno) in
      _ = try v.createUnnamed(in: try v.node(Self.data), flags: O_RDWR, mode: 0o600, by: .root)
    }
    for name in ContainerLayout.dataDirectories {
      let path = "\(Self.data)/\(name)"
      expect(.EPERM, tree, "remove \(name)") { v throws(Errno) in try v.remove(path, directory: true) }
      expect(.EPERM, tree, "hide \(name)") { v throws(Errno) in try v.rename(path, to: "\(Self.data)/.x") }
    }
    expect(.EPERM, tree, "hide Data") { v throws(Errno) in
      try v.rename(Self.data, to: "\(Self.container)/.Data")
    }
    if !isMac { return }
    // A standard directory that someone took away behind the mount is the daemon's to make again.
    #expect(rmdir(tree.path("\(Self.data)/tmp")) == 0)
    expect(.EPERM, tree, "mkdir tmp") { v throws(Errno) in try v.makeDirectory("\(Self.data)/tmp") }
  }

  /// What an app has kept from a time when it had another shape may leave; nothing comes there in its place.
  @Test func exchangeGivesNoNewNameToEither() throws {
    let tree = try tree(isMac: false)
    try tree.temporary.write("old", to: "\(Self.data)/.rc")
    try tree.view.make("\(Self.data)/Documents/new")
    for (one, other) in [(".rc", "Documents/new"), ("Documents/new", ".rc")] {
      expect(.EPERM, tree, "exchange \(one)") { v throws(Errno) in
        try v.rename("\(Self.data)/\(one)", to: "\(Self.data)/\(other)", flags: 2)
      }
    }
    try tree.view.rename("\(Self.data)/.rc", to: "\(Self.data)/Documents/old")
  }

  /// What is in them is as everywhere, and exchanges follow the same rules on both sides.
  @Test func whatIsBelowIsOrdinary() throws {
    let tree = try tree(isMac: true)
    let view = tree.view
    try view.makeDirectory("\(Self.data)/.config")
    for name in ["Library", "Documents", "Documents/Inbox", "file", "tmp"] {
      try view.makeDirectory("\(Self.data)/.config/\(name)")
    }
    try view.rename("\(Self.data)/.config/tmp", to: "\(Self.data)/.config/other")
    try view.make("\(Self.data)/Documents/a")
    try view.make("\(Self.data)/.a")
    try view.rename("\(Self.data)/Documents/a", to: "\(Self.data)/.a", flags: 2)
    for name in ["Documents", "tmp"] {
      expect(.EPERM, tree, "exchange with \(name)") { v throws(Errno) in
        try v.rename("\(Self.data)/.config", to: "\(Self.data)/\(name)", flags: 2)
      }
      expect(.EPERM, tree, "replace \(name)") { v throws(Errno) in
        try v.rename("\(Self.data)/.config", to: "\(Self.data)/\(name)")
      }
    }
    // A mailbox moved to such a name is no way to have one.
    try view.rename("\(Self.data)/.a", to: "\(Self.data)/.b")
    expect(.EPERM, tree, "an Inbox") { v throws(Errno) in
      try v.rename("\(Self.data)/.config", to: "\(Self.data)/Documents/Inbox")
    }
  }

  /// An app may become one of a phone's shape, or go, while all of it is known and in use.
  @Test(arguments: [false, true]) func whatAnAppOfAnotherShapeHasLeftMayGo(handles: Bool) throws {
    let tree = try tree(handles: handles, isMac: true)
    let view = tree.view
    try view.makeDirectory("\(Self.data)/.config")
    try view.makeDirectory("\(Self.data)/.config/deep")
    let file = try view.make("\(Self.data)/.vimrc")
    let data = try view.node(Self.data)
    let opened = try view.openDirectory(data, by: .root)
    try view.access(data, mask: W_OK, by: .root)
    tree.volume.noteMacContainers(at: [])
    for name in [".vimrc", ".new"] {
      expect(.EPERM, tree, "mkdir by a known node") { v throws(Errno) in
        _ = try name.withName { (name) throws(Errno) in
          try v.makeDirectory(name, in: data, mode: 0o755, by: .root)
        }
      }
    }
    expect(.EPERM, tree, "access") { v throws(Errno) in try v.access(data, mask: W_OK, by: .root) }
    view.releaseDirectory(data, handle: opened.handle)
    // Read and changed, as long as it is there.
    expect(nil, tree, "write") { v throws(Errno) in
      _ = try v.open(file, flags: O_RDWR, clearsSetID: false, by: .root)
    }
    expect(nil, tree, "make below") { v throws(Errno) in try v.make("\(Self.data)/.config/file") }
    for flags in [0, 1, 2] as [UInt32] {
      let name = flags == 2 ? ".config" : ".x"
      expect(.EPERM, tree, "rename \(flags)") { v throws(Errno) in
        try v.rename("\(Self.data)/.vimrc", to: "\(Self.data)/\(name)", flags: flags)
      }
    }
    try view.make("\(Self.data)/Documents/file")
    for flags in [0, 2] as [UInt32] {
      expect(.EPERM, tree, "replace \(flags)") { v throws(Errno) in
        try v.rename("\(Self.data)/Documents/file", to: "\(Self.data)/.vimrc", flags: flags)
      }
    }
    expect(nil, tree, "remove") { v throws(Errno) in try v.remove("\(Self.data)/.vimrc") }
    expect(nil, tree, "move away") { v throws(Errno) in
      try v.rename("\(Self.data)/.config", to: "\(Self.data)/Documents/config")
    }
    tree.volume.noteMacContainers(at: [Self.container])
    try view.make("\(Self.data)/.vimrc")
  }

  /// The rules are a directory's, and no other one gets them by its number or by its name.
  @Test func anotherDirectoryInItsPlaceIsNone() throws {
    let tree = try tree(isMac: true)
    #expect(rename(tree.path(Self.container), tree.path("Users/Shared/old")) == 0)
    for path in [Self.container, Self.data] { #expect(mkdir(tree.path(path), 0o755) == 0) }
    expect(.EPERM, tree, "another container") { v throws(Errno) in try v.make("\(Self.data)/.x") }
    tree.volume.noteMacContainers(at: [Self.container, "Users/anna/Library/Containers/none", "", "../.."])
    expect(nil, tree, "the same, noted") { v throws(Errno) in try v.make("\(Self.data)/.x") }
    // A link is followed nowhere.
    #expect(symlink("Containers", tree.path("Users/anna/Library/Linked")) == 0)
    tree.volume.noteMacContainers(at: ["Users/anna/Library/Linked/com.x"])
    expect(.EPERM, tree, "through a link") { v throws(Errno) in try v.make("\(Self.data)/.y") }
  }

  /// A worker that takes over finds nodes of these zones.
  @Test func nodesOfTheseZonesAreSound() throws {
    let tree = try tree(isMac: true)
    let own = try tree.view.make("\(Self.data)/.vimrc")
    #expect(try tree.view.nodes.reference(to: own).zone == .containerOwn)
    for zone in Zone.allCases {
      var node = Node()
      node.lookups = 1
      node.zone = zone
      node.flags = .inUse
      #expect(withUnsafeBytes(of: &node) { $0.baseAddress.map(Node.isSound) == true })
    }
  }

  // MARK: Trash

  private func someone(_ uid: UInt32) -> Caller { Caller(uid: uid, gid: uid, pid: 0) }

  @Test func trashHasADirectoryOfEachUser() throws {
    let tree = try Tree()
    let view = tree.view
    let (anna, bert) = (someone(501), someone(502))
    func expect(_ expected: Errno?, _ words: String, _ body: (View) throws(Errno) -> Void) {
      #expect(view.errno(body) == expected, "\(words)")
    }
    expect(nil, "own") { v throws(Errno) in try v.makeDirectory(".Trash/501", mode: 0o700, by: anna) }
    for (name, caller) in [("502", anna), ("x", anna), ("0", anna), ("501x", anna), ("502", .root)] {
      expect(.EPERM, "\(name)") { v throws(Errno) in try v.makeDirectory(".Trash/\(name)", by: caller) }
    }
    expect(.EPERM, "a file") { v throws(Errno) in try v.make(".Trash/502", by: bert) }
    expect(.EPERM, "a link") { v throws(Errno) in
      try v.at(".Trash/502") { (name, parent) throws(Errno) in
        _ = try "/".withName { (target) throws(Errno) in
          try v.makeSymlink(name, in: parent, to: target.bytes, by: bert)
        }
      }
    }
    expect(.EPERM, "without a name") { v throws(Errno) in
      _ = try v.createUnnamed(in: try v.node(".Trash"), flags: O_RDWR, mode: 0o600, by: anna)
    }
    try view.makeDirectory("Users/Shared/dir", by: anna)
    for flags in [0, 1, 2] as [UInt32] {
      expect(.EPERM, "a directory under another's name") { v throws(Errno) in
        try v.rename("Users/Shared/dir", to: ".Trash/502", flags: flags, by: anna)
      }
    }
    // Nobody but its owner takes it away, and it gets no other name.
    expect(.EPERM, "another one's") { v throws(Errno) in try v.remove(".Trash/501", directory: true, by: bert)
    }
    expect(.EPERM, "another name") { v throws(Errno) in
      try v.rename(".Trash/501", to: ".Trash/501.old", by: anna)
    }
    expect(.EACCES, "look into it") { v throws(Errno) in try v.find(".Trash/501/x", by: bert) }
    expect(.EACCES, "list") { v throws(Errno) in
      _ = try v.openDirectory(try v.node(".Trash"), by: anna)
    }
    expect(nil, "make again") { v throws(Errno) in
      try v.makeDirectory(".Trash/501/files", mode: 0o700, by: anna)
      try v.rename("Users/Shared/dir", to: ".Trash/501/files/dir", by: anna)
      try v.rename(".Trash/501", to: "Users/Shared/trash", by: anna)
      try v.rename("Users/Shared/trash", to: ".Trash/501", by: anna)
    }
    for path in [".Trash", ".Trash-501"] {
      expect(.EROFS, "the top's names") { v throws(Errno) in try v.rename(".Trash", to: path + "x") }
      expect(.EROFS, "the top's names") { v throws(Errno) in try v.makeDirectory(path + "y") }
    }
  }
}

extension Volume {
  /// As the daemon does with the containers that the registry has.
  fileprivate func noteMacContainers(at paths: [String]) {
    noteMacContainers(paths.compactMap { containerHome(at: $0) })
  }
}
