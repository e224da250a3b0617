// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// One of the four parts of the tree, each with its own master.
package enum Domain: String, Sendable, CaseIterable {
  /// Sealed: what the system consists of. Nobody changes it, root included.
  case system
  /// What this machine's administrators install for everyone on it.
  case local
  /// What comes from other machines.
  case network
  /// The homes, and what their owners share.
  case user
}

/// A directory that `insula init` lays out and that stays where it is.
package struct StandardDirectory: Sendable {
  /// Whose group it gets.
  package enum Group: Sendable { case root, admin }

  /// Its path below the root of the tree, without a slash at either end.
  package let path: String
  package let mode: UInt32
  package let group: Group

  /// The flags that it begins with: a person is not shown where disks are mounted.
  package var flags: FileFlags { path == "Volumes" ? .hidden : [] }

  /// Whether trees that earlier versions made may lack it, so that it is not missed in what is signed.
  package var isOptional: Bool {
    path.hasPrefix(DomainTree.systemLibrary) && DomainTree.systemNames.contains { path.hasSuffix("/\($0)") }
  }

  init(_ path: String, _ mode: UInt32, _ group: Group) {
    self.path = path
    self.mode = mode
    self.group = group
  }
}

/// The objects that every new tree has.
///
/// All of it belongs to root.
package enum DomainTree {
  /// The root of the tree itself.
  package static let root = StandardDirectory("", 0o755, .root)

  /// In which each user has a directory for what they throw away.
  ///
  /// Everyone may make that, and only its owner sees who has one. Stores of earlier versions don't have it.
  package static let trash = StandardDirectory(".Trash", 0o1733, .root)

  /// In which the computers of the network are.
  ///
  /// Stores of earlier versions don't have it.
  package static let servers = StandardDirectory("Network/Servers", 0o755, .root)

  /// Whether people are shown the directory at a path under its name in their language wherever that path
  /// leads, since nothing else can have it: standard directories, and those for the apps of users.
  package static func isLocalized(_ path: [[UInt8]]) -> Bool {
    if path.count == 3 {
      return path[0].elementsEqual("Users".utf8) && path[2].elementsEqual("Applications".utf8)
    }
    return path.count <= 2 && path.last?.first != UInt8(ascii: ".")
      && directories.contains { directory in
        directory.path.split(separator: "/").elementsEqual(path) { $0.utf8.elementsEqual($1) }
      }
  }

  /// What the system's Library got later: trees that were signed before that lack them.
  fileprivate static let systemNames = ["Application Support", "Caches", "Frameworks", "Preferences"]
  fileprivate static let systemLibrary = "System/Library/"

  /// The standard directories, parents before children.
  package static let directories: [StandardDirectory] =
    [
      StandardDirectory("Applications", 0o775, .admin),
      StandardDirectory("Applications/Utilities", 0o775, .admin),
      StandardDirectory("Library", 0o775, .admin),
      StandardDirectory("Library/Application Support", 0o755, .admin),
      StandardDirectory("Library/Caches", 0o1777, .admin),
      StandardDirectory("Library/Fonts", 0o1775, .admin),
    ]
    + ["Documentation", "Frameworks", "Logs", "Printers", "Receipts", "Updates"].map {
      StandardDirectory("Library/" + $0, 0o775, .admin)
    }
    + ["Internet Plug-Ins", "Keychains"].map {
      StandardDirectory("Library/" + $0, 0o755, .admin)
    }
    + [
      "ColorPickers", "Extensions", "Filesystems", "LaunchAgents", "LaunchDaemons", "PreferencePanes",
      "Preferences", "ScriptingAdditions",
    ].map { StandardDirectory("Library/" + $0, 0o755, .root) }
    + [
      StandardDirectory("Network", 0o755, .root),
      servers,
      StandardDirectory("System", 0o755, .root),
      StandardDirectory("System/Library", 0o755, .root),
      StandardDirectory("System/Library/CoreServices", 0o755, .root),
      StandardDirectory("System/Library/LaunchDaemons", 0o755, .root),
      StandardDirectory("System/Library/Templates", 0o755, .root),
    ]
    + systemNames.map { StandardDirectory(systemLibrary + $0, 0o755, .root) }
    + [
      StandardDirectory("Users", 0o755, .admin),
      StandardDirectory("Users/Shared", 0o1777, .root),
      StandardDirectory("Volumes", 0o755, .root),
      trash,
    ]
}

/// A directory that every new home has; it belongs to the home's owner.
package struct HomeDirectory: Sendable {
  /// Its path below the home.
  package let path: String
  package let mode: UInt32

  init(_ path: String, _ mode: UInt32) {
    self.path = path
    self.mode = mode
  }

  /// The ACL of a home and its standard directories: nobody may remove or rename them.
  ///
  /// That includes the owner, who may however remove the ACL.
  package static let staying = AccessControlList([AccessControlEntry(.deny, .everyone, .delete)])

  /// The ACL that it begins with; one without entries is none, as in the Library of a Mac.
  ///
  /// What others leave in the Drop Box is theirs, and the box's owner may do everything with it.
  package func acl(owner: UInt32) -> AccessControlList {
    if path.hasPrefix("Library/") { return AccessControlList([]) }
    guard path == "Public/Drop Box" else { return Self.staying }
    let access = AccessControlEntry(.permit, .user(owner), .all, [.fileInherit, .directoryInherit])
    return AccessControlList(Self.staying.entries + [access])
  }

  /// The flags that it begins with.
  package var flags: FileFlags { path == "Library" ? .hidden : [] }

  /// Whether people are to see what it is called in their language: see ``DisplayName``.
  ///
  /// That for apps is known by its place; see ``DomainTree/isLocalized(_:)``.
  package var isLocalized: Bool {
    !path.hasPrefix(".") && !path.hasPrefix("Library/") && path != "Applications"
  }

  /// The home itself: others may walk through it to Public, and can't list it.
  package static let homeMode: UInt32 = 0o711

  /// The eleven standard directories, what the Library of a Mac begins with, and the box in Public in which
  /// others leave things unseen.
  package static let all: [HomeDirectory] =
    [
      ".Trash", "Applications", "Desktop", "Documents", "Downloads", "Library", "Movies", "Music", "Pictures",
      "Sites",
    ].map { HomeDirectory($0, 0o700) }
    + [
      "Application Support", "Autosave Information", "Caches", "Fonts", "Frameworks", "Input Methods",
      "Keychains", "LaunchAgents", "Logs", "PreferencePanes", "Preferences", "Sounds",
    ].map { HomeDirectory("Library/" + $0, 0o700) }
    + [
      HomeDirectory("Public", 0o755),
      HomeDirectory("Public/Drop Box", 0o733),
    ]
}
