// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What a place in the tree is.
///
/// It follows from the zone of its parent and its own name, so it is known without walking anywhere.
package enum Zone: UInt8, Sendable, CaseIterable {
  /// The root of the tree: its entries are fixed.
  case top
  /// The system domain and all below it.
  case system
  /// `/Applications`, `/Library`: standard directories of the local domain.
  case applications
  case library
  /// A standard directory of the local domain in which no further one lies, and `/Volumes`.
  case localStandard
  /// Anything else in the local domain.
  case local
  /// `/Network`, and what is in it.
  case networkStandard
  case network
  /// `/Users`: homes are made here.
  case users
  /// `/Users/Shared`.
  case sharedStandard
  /// A home, its `Library`, and in that the directories in which its containers are.
  case home
  case homeLibrary
  case containers
  case groupContainers
  /// The container of an app: its entries are fixed.
  case container
  /// What an app has as its home, in its container: its entries are fixed.
  case containerData
  /// The container of a group, which is its members' save for what describes it.
  case groupContainer
  /// What in a container is the daemon's: what describes it, and the link to the app's bundle.
  case containerFixture
  /// Anything else in the user domain.
  case user

  /// The zone of the child called `name`.
  package func zone(of name: some Collection<UInt8>) -> Zone {
    switch self {
    case .top: Self.topZone(of: name)
    case .applications: name.elementsEqual("Utilities".utf8) ? .localStandard : .local
    case .library: Self.isStandardLibraryName(name) ? .localStandard : .local
    case .localStandard, .local: .local
    case .networkStandard, .network: .network
    case .users: Self.zoneInUsers(of: name)
    case .home: name.elementsEqual("Library".utf8) ? .homeLibrary : .user
    case .homeLibrary: Self.zoneInLibrary(of: name)
    // What is made or removed there has such a name meanwhile.
    case .containers: Self.isHidden(name) ? .user : .container
    case .groupContainers: Self.isHidden(name) ? .user : .groupContainer
    case .container: name.elementsEqual(ContainerLayout.dataName.utf8) ? .containerData : .containerFixture
    case .containerData: Self.isContainerDirectory(name) ? .user : .containerFixture
    case .groupContainer: name.elementsEqual(ContainerLayout.metadataName.utf8) ? .containerFixture : .user
    case .sharedStandard, .containerFixture, .user: .user
    case .system: .system
    }
  }

  /// The zone of what lies so deep in here that its name makes no difference.
  package var inside: Zone {
    switch domain {
    case .system: .system
    case .local: .local
    case .network: .network
    case .user: .user
    }
  }

  /// The domain that the place belongs to; the root of the tree is the system's.
  package var domain: Domain {
    switch self {
    case .top, .system: .system
    case .applications, .library, .localStandard, .local: .local
    case .networkStandard, .network: .network
    case .users, .sharedStandard, .home, .homeLibrary, .containers, .groupContainers, .container,
      .containerData, .groupContainer, .containerFixture, .user:
      .user
    }
  }

  /// Whether nothing here ever changes while the tree is mounted.
  package var isSealed: Bool { self == .top || self == .system }

  /// Whether this is a directory of the skeleton, which nobody removes, renames or replaces.
  package var isSkeleton: Bool {
    switch self {
    case .top, .applications, .library, .localStandard, .networkStandard, .users, .sharedStandard: true
    case .system, .local, .network, .home, .homeLibrary, .containers, .groupContainers, .container,
      .containerData, .groupContainer, .containerFixture, .user:
      false
    }
  }

  /// Whether a directory here gets no names and loses none: what it consists of was settled when it was made.
  package var hasFixedNames: Bool { self == .container || self == .containerData }

  /// Whether what is here is changed by the daemon alone.
  package var isFixture: Bool { self == .containerFixture }

  /// Whether children may have a zone other than their siblings', so that names matter.
  package var namesMatter: Bool {
    switch self {
    case .top, .applications, .library, .users, .home, .homeLibrary, .containers, .groupContainers,
      .container, .containerData, .groupContainer:
      true
    case .system, .localStandard, .local, .networkStandard, .network, .sharedStandard, .containerFixture,
      .user:
      false
    }
  }

  private static func zoneInUsers(of name: some Collection<UInt8>) -> Zone {
    if name.elementsEqual("Shared".utf8) { return .sharedStandard }
    // No home has such a name: it is one that is being made or removed.
    return isHidden(name) ? .user : .home
  }

  private static func zoneInLibrary(of name: some Collection<UInt8>) -> Zone {
    for (known, zone) in libraryZones where name.elementsEqual(known.utf8) { return zone }
    return .user
  }

  private static let libraryZones: [(String, Zone)] = [
    ("Containers", .containers), ("Group Containers", .groupContainers),
  ]

  private static func isContainerDirectory(_ name: some Collection<UInt8>) -> Bool {
    containerDirectories.contains { name.elementsEqual($0.utf8) }
  }

  private static let containerDirectories = ["Documents", "Library", "tmp"]

  /// Whether a name begins with a dot, or is none.
  private static func isHidden(_ name: some Collection<UInt8>) -> Bool {
    name.first.map { $0 == UInt8(ascii: ".") } ?? true
  }

  private static func topZone(of name: some Collection<UInt8>) -> Zone {
    for (top, zone) in topZones where name.elementsEqual(top.utf8) { return zone }
    // The root is fixed, so a name that is not on the list was put into the store from behind: sealed.
    return .system
  }

  private static let topZones: [(String, Zone)] = [
    ("Users", .users), ("Library", .library), ("Applications", .applications), ("System", .system),
    ("Network", .networkStandard), ("Volumes", .localStandard),
  ]

  private static func isStandardLibraryName(_ name: some Collection<UInt8>) -> Bool {
    standardLibraryNames.contains { name.elementsEqual($0.utf8) }
  }

  private static let standardLibraryNames: [Substring] = DomainTree.directories.compactMap {
    $0.path.hasPrefix("Library/") ? $0.path.dropFirst("Library/".count) : nil
  }
}
