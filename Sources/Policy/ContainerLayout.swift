// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What a container is for.
package enum ContainerKind: String, Codable, Sendable, CaseIterable {
  /// An app's own.
  case data
  /// What the apps of a group share.
  case group
  /// What an app keeps in iCloud.
  case cloud

  /// The number that Apple's metadata have for it; none for what lies in iCloud, which has no metadata.
  package var contentClass: Int? {
    switch self {
    case .data: 2
    case .group: 7
    case .cloud: nil
    }
  }
}

/// Where the containers of a home are, and what one consists of when it begins.
package enum ContainerLayout {
  /// The file in a container that says whose it is.
  package static let metadataName = ".com.apple.mobile_container_manager.metadata.plist"
  /// What an app has as its home.
  package static let dataName = "Data"
  /// Where what others deliver to the app is put, in the app's container; it is made for the first delivery.
  package static let inboxPath = "\(documentsPath)/\(inboxName)"
  package static let documentsPath = "Data/Documents"
  package static let inboxName = "Inbox"
  /// All of it is its owner's alone.
  package static let mode: UInt32 = 0o700
  package static let metadataMode: UInt32 = 0o600

  /// The directory of a home that holds the containers of a kind.
  package static func directory(of kind: ContainerKind) -> String {
    switch kind {
    case .data: "Library/Containers"
    case .group: "Library/Group Containers"
    case .cloud: "Library/Mobile Documents"
    }
  }

  /// The name of a container in that directory.
  package static func name(of identifier: AppIdentifier, _ kind: ContainerKind) -> String {
    // As on a Mac; no identifier has a tilde in it, so two can't have the same name.
    kind == .cloud ? String(identifier.text.map { $0 == "." ? "~" : $0 }) : identifier.text
  }

  /// A container's path below the home.
  package static func path(of identifier: AppIdentifier, _ kind: ContainerKind) -> String {
    "\(directory(of: kind))/\(name(of: identifier, kind))"
  }

  /// The directories of the app itself, in ``dataName``.
  ///
  /// Beside them, only names with a dot are the app's.
  package static let dataDirectories = ["Documents", "Library", "tmp"]

  /// Whether a name in ``dataName`` may be the app's own, as those are that Unix programs give to what they
  /// keep in a home.
  ///
  /// What describes a container has such a name too, and so may more of that kind.
  package static func isOwnName(_ name: some Collection<UInt8>) -> Bool {
    name.first == UInt8(ascii: ".") && !name.starts(with: reservedPrefix.utf8)
  }

  /// Whether a name in ``dataName`` is that of an app's data.
  package static func isDataName(_ name: some Collection<UInt8>) -> Bool {
    dataDirectories.contains { name.elementsEqual($0.utf8) } || isOwnName(name)
  }

  static let reservedPrefix = ".com.apple."

  /// The directories in a container, parents before children.
  package static func directories(of kind: ContainerKind) -> [String] {
    switch kind {
    case .data:
      [
        "Data", "Data/Documents", "Data/Library", "Data/Library/Application Support", "Data/Library/Caches",
        "Data/Library/Preferences", "Data/tmp",
      ]
    case .group: []
    case .cloud: ["Documents"]
    }
  }

  /// The target of a link at `link` that leads to `target`, both below the root of the tree.
  ///
  /// Relative, so that it holds wherever the tree is mounted.
  package static func target(of link: String, to target: String) -> String {
    let from = link.split(separator: "/").dropLast()
    let to = target.split(separator: "/")
    let common = zip(from, to).prefix { $0 == $1 }.count
    let climb = Array(repeating: Substring(".."), count: from.count - common)
    return (climb + to.dropFirst(common)).joined(separator: "/")
  }
}
