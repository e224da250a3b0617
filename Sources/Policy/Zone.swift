// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What a place in the tree is.
///
/// It follows from the zone of its parent and its own name, so no path walk is needed.
package enum Zone: UInt8, Sendable, CaseIterable {
  /// The root of the tree: its entries are fixed.
  case top
  /// The system domain and all below it.
  case system
  /// `/Applications`, `/Library`: standard directories of the local domain.
  case applications
  case library
  /// A standard directory of the local domain in which no further one lies.
  case localStandard
  /// `/Applications/Utilities`.
  case utilities
  /// Anything else in the local domain.
  case local
  /// `/Network`, the apps in it, and what else is in it.
  case networkStandard
  case networkApplications
  case network
  /// `/Users`: homes are made here.
  case users
  /// `/Users/Shared`.
  case sharedStandard
  /// A home, its `Applications` and its `Library`, and in that the directories in which its containers are.
  case home
  case homeApplications
  case homeLibrary
  case containers
  case groupContainers
  case cloudContainers
  /// The container of an app: its entries are fixed.
  case container
  /// What an app has as its home, in its container: its entries are fixed.
  case containerData
  /// The container of a group, which is its members' except what describes it.
  case groupContainer
  /// What an app keeps in iCloud, which is the user's.
  case cloudContainer
  /// What in a container is the daemon's: what describes it, and the link to the app's bundle.
  case containerFixture
  /// The Documents of an app, in which its Inbox is.
  case containerDocuments
  /// Where others put things for an app, and all that they have put there: to be read and taken away, and
  /// never changed.
  case inbox
  case delivered
  /// Anything else in the user domain.
  case user
  /// An installed app and all that is in it.
  ///
  /// No name says what is installed, so no zone of a child is one of these; see ``app``.
  case localApp
  case networkApp
  case userApp
  // Numbers are kept when another program takes over a mount, so new zones come last.
  /// ``containerData`` of an app of a Mac's shape, in which names with a dot are the app's own.
  ///
  /// No name says which shape an app has, so no zone of a child is this one; see ``ofMacShape``.
  case macContainerData
  /// What has a name with a dot at the top of an app's home: it may go, whatever shape the app has.
  case containerOwn
  /// `/.Trash`, in which each user has a directory for what they throw away: a standard directory.
  case trashes
  /// The Documents of an app in iCloud, which its user sees there.
  case cloudDocuments
  /// `/Volumes`, whose names are those of the volumes that are attached.
  case volumes
  /// A volume and all that is in it: others than the daemon may change that.
  case volume
  /// The same of one that is attached read-only.
  ///
  /// No name says which volume is, so no zone of a child of ``volumes`` is this one.
  case readOnlyVolume
  /// The same two of a volume on which nobody is the owner of anything, so everyone is who gets there.
  case ownerlessVolume
  case readOnlyOwnerlessVolume
  /// `/Network/Servers`, whose names are those of the computers that are known, and a computer's directory,
  /// whose names are those of what it shares; the daemon alone says.
  case servers
  case server

  /// The zone of the child called `name`.
  package func zone(of name: some Collection<UInt8>) -> Zone {
    switch self {
    case .top: Self.topZone(of: name)
    case .applications: name.elementsEqual("Utilities".utf8) ? .utilities : .local
    case .library: Self.isStandardLibraryName(name) ? .localStandard : .local
    case .localStandard, .utilities, .local: .local
    case .networkStandard: Self.zoneInNetwork(of: name)
    // What has such a name there is no computer's.
    case .servers: Self.isHidden(name) ? .network : .server
    case .networkApplications, .network: .network
    case .users: Self.zoneInUsers(of: name)
    case .home: Self.zoneInHome(of: name)
    case .homeLibrary: Self.zoneInLibrary(of: name)
    // What is made or removed there has such a name meanwhile.
    case .containers: Self.isHidden(name) ? .user : .container
    case .groupContainers: Self.isHidden(name) ? .user : .groupContainer
    case .cloudContainers: Self.isHidden(name) ? .user : .cloudContainer
    case .container: name.elementsEqual(ContainerLayout.dataName.utf8) ? .containerData : .containerFixture
    case .containerData, .macContainerData: Self.zoneInData(of: name)
    case .containerDocuments: name.elementsEqual(ContainerLayout.inboxName.utf8) ? .inbox : .user
    case .inbox, .delivered: .delivered
    case .groupContainer: name.elementsEqual(ContainerLayout.metadataName.utf8) ? .containerFixture : .user
    case .cloudContainer: name.elementsEqual("Documents".utf8) ? .cloudDocuments : .user
    case .sharedStandard, .trashes, .homeApplications, .cloudDocuments, .containerFixture, .containerOwn,
      .user:
      .user
    case .volumes, .server: .volume
    case .system, .localApp, .networkApp, .userApp, .volume, .readOnlyVolume, .ownerlessVolume,
      .readOnlyOwnerlessVolume:
      self
    }
  }

  /// The zone of an app that is installed in this directory; nil where none can be.
  package var app: Zone? {
    switch self {
    case .applications, .utilities: .localApp
    case .networkApplications: .networkApp
    case .homeApplications: .userApp
    case .top, .system, .library, .localStandard, .local, .networkStandard, .network, .users, .sharedStandard,
      .home, .homeLibrary, .containers, .groupContainers, .cloudContainers, .container, .containerData,
      .macContainerData, .groupContainer, .cloudContainer, .cloudDocuments, .containerFixture,
      .containerDocuments, .inbox, .delivered, .containerOwn, .trashes, .user, .localApp, .networkApp,
      .userApp, .volumes, .volume, .readOnlyVolume, .ownerlessVolume, .readOnlyOwnerlessVolume, .servers,
      .server:
      nil
    }
  }

  /// The zone of what lies so deep in here that its name makes no difference.
  package var inside: Zone {
    if isReadOnlyRegion || isOnVolume { return self }
    if self == .volumes || self == .servers || self == .server { return .volume }
    if isDelivery { return .delivered }
    return switch domain {
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
    case .applications, .library, .localStandard, .utilities, .local, .localApp, .volumes, .volume,
      .readOnlyVolume, .ownerlessVolume, .readOnlyOwnerlessVolume:
      .local
    case .networkStandard, .networkApplications, .network, .networkApp, .servers, .server: .network
    case .users, .sharedStandard, .home, .homeApplications, .homeLibrary, .containers, .groupContainers,
      .cloudContainers, .container, .containerData, .macContainerData, .groupContainer, .cloudContainer,
      .cloudDocuments, .containerFixture, .containerDocuments, .inbox, .delivered, .containerOwn, .trashes,
      .user, .userApp:
      .user
    }
  }

  /// Whether nothing here ever changes while the tree is mounted.
  package var isReadOnly: Bool {
    self == .top || self == .readOnlyVolume || self == .readOnlyOwnerlessVolume || isReadOnlyRegion
  }

  /// Whether this is below /Volumes or /Network, on a volume that is no home.
  package var isOnVolume: Bool { self == .volume || self == .readOnlyVolume || hasNoOwners }

  /// Whether who gets here counts as the owner of all that is here.
  package var hasNoOwners: Bool { self == .ownerlessVolume || self == .readOnlyOwnerlessVolume }

  /// Whether this is what a seal can speak of: the system domain, or an installed app.
  package var isReadOnlyRegion: Bool {
    switch self {
    case .system, .localApp, .networkApp, .userApp: true
    default: false
    }
  }

  /// Whether this is a directory of the skeleton, which nobody removes, renames or replaces.
  package var isSkeleton: Bool {
    switch self {
    case .top, .applications, .library, .localStandard, .utilities, .networkStandard, .users, .sharedStandard,
      .trashes, .volumes, .servers, .server:
      true
    case .system, .local, .networkApplications, .network, .home, .homeApplications, .homeLibrary, .containers,
      .groupContainers, .cloudContainers, .container, .containerData, .macContainerData, .groupContainer,
      .cloudContainer, .cloudDocuments, .containerFixture, .containerDocuments, .inbox, .delivered,
      .containerOwn, .user, .localApp, .networkApp, .userApp, .volume, .readOnlyVolume, .ownerlessVolume,
      .readOnlyOwnerlessVolume:
      false
    }
  }

  /// Whether a directory here gets no names: what it consists of was settled when it was made, or the daemon
  /// alone says.
  package var hasFixedNames: Bool {
    self == .container || self == .containerData || holdsVolumes || self == .servers
  }

  /// Whether the names in a directory here are those of volumes, and no others.
  package var holdsVolumes: Bool { self == .volumes || self == .server }

  /// Whether some of the names in a directory here may be those of volumes, or of homes on volumes.
  package var mayHoldVolumes: Bool { holdsVolumes || self == .networkStandard || self == .users }

  /// Whether a directory here keeps what has a name of the zone `child` in it.
  package func keeps(_ child: Zone) -> Bool {
    self == .container || mayHoldVolumes && (child.isOnVolume || holdsVolumes) || self == .servers
      || child == .cloudDocuments
      || isContainerData && child != .containerOwn
  }

  /// Whether a directory here may get a name of the zone `child`, as far as the name decides it.
  package func mayGet(_ child: Zone) -> Bool { !isContainerData || child == .containerOwn }

  /// Whether this is what an app has as its home, of either shape.
  package var isContainerData: Bool { self == .containerData || self == .macContainerData }

  /// The same place in the container of an app of a Mac's shape.
  package var ofMacShape: Zone { self == .containerData ? .macContainerData : self }

  /// Whether this is a container, which only the daemon makes and moves: a directory that had its name for a
  /// while would be one, and a container under another name would have no rules.
  package var isContainer: Bool { self == .container || self == .groupContainer || self == .cloudContainer }

  /// Whether a directory here is neither renamed nor moved by anyone: it is a container, or leads to some.
  package var keepsItsPlace: Bool {
    isContainer || self == .containers || self == .groupContainers || self == .cloudContainers
      || self == .homeLibrary || self == .cloudDocuments
  }

  /// Whether what is here is changed by the daemon alone.
  package var isFixture: Bool { self == .containerFixture }

  /// Whether this is an Inbox or in one.
  package var isDelivery: Bool { self == .inbox || self == .delivered }

  /// Whether what is here stays as it is, though it may go: nobody changes it but the daemon.
  package var isUnchangeable: Bool { isFixture || isDelivery }

  /// Whether what is in a directory that came from here to there has the same zone as before.
  package func hasSameInside(as other: Zone) -> Bool {
    self == other || !namesMatter && !other.namesMatter && inside == other.inside
  }

  /// Whether children may have a zone other than their siblings', so that names matter.
  package var namesMatter: Bool {
    switch self {
    case .top, .applications, .library, .networkStandard, .users, .home, .homeLibrary, .containers,
      .groupContainers, .cloudContainers, .container, .containerData, .macContainerData, .containerDocuments,
      .groupContainer, .cloudContainer, .servers:
      true
    case .system, .localStandard, .utilities, .local, .networkApplications, .network, .sharedStandard,
      .trashes, .homeApplications, .cloudDocuments, .containerFixture, .inbox, .delivered, .containerOwn,
      .user, .localApp, .networkApp, .userApp, .volumes, .volume, .readOnlyVolume, .ownerlessVolume,
      .readOnlyOwnerlessVolume, .server:
      false
    }
  }

  private static func zoneInNetwork(of name: some Collection<UInt8>) -> Zone {
    if name.elementsEqual("Applications".utf8) { return .networkApplications }
    return name.elementsEqual("Servers".utf8) ? .servers : .network
  }

  private static func zoneInUsers(of name: some Collection<UInt8>) -> Zone {
    if name.elementsEqual("Shared".utf8) { return .sharedStandard }
    // No home has such a name: it is one that is being made or removed.
    return isHidden(name) ? .user : .home
  }

  private static func zoneInHome(of name: some Collection<UInt8>) -> Zone {
    if name.elementsEqual("Library".utf8) { return .homeLibrary }
    return name.elementsEqual("Applications".utf8) ? .homeApplications : .user
  }

  private static func zoneInLibrary(of name: some Collection<UInt8>) -> Zone {
    for (known, zone) in libraryZones where name.elementsEqual(known.utf8) { return zone }
    return .user
  }

  static let libraryZones: [(String, Zone)] = [
    ("Containers", .containers), ("Group Containers", .groupContainers),
    ("Mobile Documents", .cloudContainers),
  ]

  private static func zoneInData(of name: some Collection<UInt8>) -> Zone {
    for (known, zone) in dataZones where name.elementsEqual(known.utf8) { return zone }
    return ContainerLayout.isOwnName(name) ? .containerOwn : .containerFixture
  }

  private static let dataZones: [(String, Zone)] = [
    ("Documents", .containerDocuments), ("Library", .user), ("tmp", .user),
  ]

  /// Whether a name begins with a dot, or is none.
  private static func isHidden(_ name: some Collection<UInt8>) -> Bool {
    name.first.map { $0 == UInt8(ascii: ".") } ?? true
  }

  private static func topZone(of name: some Collection<UInt8>) -> Zone {
    for (top, zone) in topZones where name.elementsEqual(top.utf8) { return zone }
    // The root directory is fixed. An unknown name there was put into the store behind the daemon's back, and
    // is read-only.
    return .system
  }

  static let topZones: [(String, Zone)] = [
    ("Users", .users), ("Library", .library), ("Applications", .applications), ("System", .system),
    ("Network", .networkStandard), ("Volumes", .volumes), (DomainTree.trash.path, .trashes),
  ]

  private static func isStandardLibraryName(_ name: some Collection<UInt8>) -> Bool {
    standardLibraryNames.contains { name.elementsEqual($0.utf8) }
  }

  static let standardLibraryNames: [Substring] = DomainTree.directories.compactMap {
    $0.path.hasPrefix("Library/") ? $0.path.dropFirst("Library/".count) : nil
  }
}
