// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

@Suite struct ZoneTests {
  private func zone(of path: String) -> Zone {
    path.split(separator: "/").reduce(Zone.top) { $0.zone(of: $1.utf8) }
  }

  @Test(
    arguments: [
      ("/", .top), ("/Applications", .applications), ("/Applications/Utilities", .utilities),
      ("/Applications/Editor.app", .local), ("/Applications/Utilities/Tool", .local), ("/Library", .library),
      ("/Library/Caches", .localStandard), ("/Library/Own", .local), ("/Library/Caches/Caches", .local),
      ("/Network", .networkStandard), ("/Network/host", .network),
      ("/Network/Applications", .networkApplications),
      ("/Network/Applications/Editor.app", .network), ("/Network/host/Applications", .network),
      ("/Network/host/Users", .network),
      ("/System", .system), ("/System/Library", .system), ("/System/Library/a/b/c", .system),
      ("/Users", .users), ("/Users/Shared", .sharedStandard), ("/Users/anna", .home),
      ("/Users/anna/Library", .homeLibrary), ("/Users/anna/Applications", .homeApplications),
      ("/Users/anna/Applications/Editor.app", .user), ("/Users/anna/Documents/Applications", .user),
      ("/Users/Shared/Applications", .user), ("/Users/Shared/Shared", .user),
      ("/Users/Shared/Library/Containers", .user), ("/Users/.anna.new-7", .user),
      ("/Users/.anna.new-7/Library/Containers/a/Data/x", .user), ("/Users/anna/Documents/Library", .user),
      ("/Users/anna/Library/Caches/Containers/a", .user), ("/Users/anna/Library/Containers", .containers),
      ("/Users/anna/Library/Containers/com.x", .container), ("/Users/anna/Library/Containers/.x", .user),
      ("/Users/anna/Library/Containers/com.x/Data", .containerData),
      ("/Users/anna/Library/Containers/com.x/\(ContainerLayout.metadataName)", .containerFixture),
      ("/Users/anna/Library/Containers/com.x/other", .containerFixture),
      ("/Users/anna/Library/Containers/com.x/Data/Documents", .containerDocuments),
      ("/Users/anna/Library/Containers/com.x/Data/Documents/file", .user),
      ("/Users/anna/Library/Containers/com.x/Data/Documents/inbox", .user),
      ("/Users/anna/Library/Containers/com.x/Data/Documents/a/Inbox", .user),
      ("/Users/anna/Library/Containers/com.x/Data/Documents/Inbox", .inbox),
      ("/Users/anna/Library/Containers/com.x/Data/Documents/Inbox/file", .delivered),
      ("/Users/anna/Library/Containers/com.x/Data/Documents/Inbox/Inbox/Inbox", .delivered),
      ("/Users/anna/Library/Containers/.com.x/Data/Documents/Inbox/file", .user),
      ("/Users/anna/Library/Mobile Documents/iCloud~x/Documents/Inbox/file", .user),
      ("/Users/anna/Library/Group Containers/group.x/Documents/Inbox/file", .user),
      ("/Users/anna/Documents/Inbox/file", .user),
      ("/Users/anna/Library/Containers/com.x/Data/Library", .user),
      ("/Users/anna/Library/Containers/com.x/Data/Library/Containers/a", .user),
      ("/Users/anna/Library/Containers/com.x/Data/tmp", .user),
      ("/Users/anna/Library/Containers/com.x/Data/X.app", .containerFixture),
      ("/Users/anna/Library/Containers/com.x/Data/.vimrc", .containerOwn),
      ("/Users/anna/Library/Containers/com.x/Data/..x", .containerOwn),
      ("/Users/anna/Library/Containers/com.x/Data/.config/git", .user),
      ("/Users/anna/Library/Containers/com.x/Data/.config/Documents/Inbox", .user),
      ("/Users/anna/Library/Containers/com.x/Data/.com.apple.x", .containerFixture),
      ("/Users/anna/Library/Containers/com.x/Data/\(ContainerLayout.metadataName)", .containerFixture),
      ("/Users/anna/Library/Containers/com.x/.vimrc", .containerFixture), ("/.Trash", .trashes),
      ("/.Trash/501", .user), ("/.Trash/501/files/Library/Containers/com.x", .user), ("/.trash", .system),
      ("/Users/anna/.Trash", .user), ("/Users/.Trash", .user),
      ("/Users/anna/Library/Group Containers", .groupContainers),
      ("/Users/anna/Library/Group Containers/group.x", .groupContainer),
      ("/Users/anna/Library/Group Containers/group.x/file", .user),
      ("/Users/anna/Library/Group Containers/group.x/\(ContainerLayout.metadataName)", .containerFixture),
      ("/Users/anna/Library/Mobile Documents", .cloudContainers),
      ("/Users/anna/Library/Mobile Documents/iCloud~x", .cloudContainer),
      ("/Users/anna/Library/Mobile Documents/.x", .user),
      ("/Users/anna/Library/Mobile Documents/iCloud~x/Documents", .cloudDocuments),
      ("/Users/anna/Library/Mobile Documents/iCloud~x/Documents/Documents", .user),
      ("/Users/anna/Library/Mobile Documents/iCloud~x/file", .user), ("/Volumes", .volumes),
      ("/Volumes/disk", .volume), ("/Volumes/disk/Library/Containers", .volume),
    ] as [(String, Zone)])
  func followsFromParentAndName(path: String, expected: Zone) {
    #expect(zone(of: path) == expected)
  }

  @Test(arguments: ["applications", "Users ", "", "etc", "System\0"])
  func nameThatIsNotOnTheListIsReadOnly(name: String) {
    #expect(Zone.top.zone(of: name.utf8).isReadOnly)
  }

  @Test func everyStandardDirectoryIsReadOnlyOrSkeleton() {
    for directory in DomainTree.directories {
      let zone = zone(of: directory.path)
      #expect(zone.isReadOnly || zone.isSkeleton, "\(directory.path)")
    }
  }

  @Test func nothingBesidesTheStandardDirectoriesIsSkeleton() {
    for path in [
      "/Library/Own", "/Applications/a", "/Users/anna", "/Users/Shared/a", "/Volumes/a", "/Network/a",
    ] {
      #expect(!zone(of: path).isSkeleton, "\(path)")
    }
  }

  /// No name makes a place sealed that others may put something in: what is installed is not in names.
  @Test func noNameIsThatOfAnInstalledApp() {
    let apps: [Zone: Zone] = [
      .applications: .localApp, .utilities: .localApp, .networkApplications: .networkApp,
      .homeApplications: .userApp,
    ]
    for zone in Zone.allCases {
      #expect(zone.app == apps[zone], "\(zone)")
      for name in ["Note.app", "Contents", "Applications", "x"] where !zone.isReadOnly {
        #expect(!zone.zone(of: name.utf8).isReadOnlyRegion, "\(zone)")
      }
    }
  }

  @Test(arguments: [Zone.localApp, .networkApp, .userApp, .system])
  func allThatIsInAReadOnlyRegionIsReadOnly(zone: Zone) {
    #expect(zone.isReadOnly && zone.isReadOnlyRegion && !zone.isSkeleton && zone.inside == zone)
    for name in ["Contents", "Library", "Applications", "Data", ""] {
      #expect(zone.zone(of: name.utf8) == zone)
    }
  }

  @Test func parentsComeBeforeChildren() {
    var seen: Set<String> = [""]
    for directory in DomainTree.directories {
      let parent = directory.path.split(separator: "/").dropLast().joined(separator: "/")
      #expect(seen.contains(parent), "\(directory.path)")
      #expect(seen.insert(directory.path).inserted, "\(directory.path) is listed twice")
    }
  }

  @Test func namesMatterExactlyWhereChildrenDiffer() {
    let names =
      DomainTree.directories.flatMap { $0.path.split(separator: "/").map(String.init) }
      + [
        "Containers", "Group Containers", "Mobile Documents", "Data", ContainerLayout.metadataName,
        "Documents", "Inbox", ".x",
        "other",
      ]
    for zone in Zone.allCases {
      let children = Set(names.map { zone.zone(of: $0.utf8) })
      #expect(zone.namesMatter == (children.count > 1), "\(zone)")
    }
  }

  @Test func whatLiesDeepIsOfOneZoneInEachDomain() {
    for zone in Zone.allCases {
      var deep = zone
      for _ in 0..<8 { deep = deep.zone(of: "other".utf8) }
      #expect(deep == zone.inside || zone.inside == .user && deep == .containerFixture, "\(zone)")
      // A volume is one wherever it is.
      let isInItsDomain = zone.inside.domain == zone.domain || zone.inside == .volume
      #expect(isInItsDomain && !zone.inside.namesMatter, "\(zone)")
    }
  }

  @Test func containersAndWhatLeadsToThemKeepTheirPlaces() {
    for kind in ContainerKind.allCases {
      let directory = "/Users/anna/\(ContainerLayout.directory(of: kind))"
      #expect(zone(of: directory).keepsItsPlace && !zone(of: directory).isContainer)
      #expect(zone(of: directory + "/x").keepsItsPlace && zone(of: directory + "/x").isContainer)
      #expect(!zone(of: directory + "/.x").keepsItsPlace)
    }
    #expect(zone(of: "/Users/anna/Library").keepsItsPlace && !zone(of: "/Users/anna/Documents").keepsItsPlace)
  }

  @Test func containersHaveFixedNamesAndTheirContentsHaveNot() {
    for path in ContainerLayout.directories(of: .data) {
      let zone = zone(of: "/Users/anna/Library/Containers/com.x/" + path)
      #expect(zone.hasFixedNames == (path == "Data") && !zone.isUnchangeable, "\(path)")
    }
    #expect(zone(of: "/Users/anna/Library/Containers/com.x").hasFixedNames)
  }

  /// A directory that an app may fill with names costs no look at every node when it is moved.
  @Test func whatIsInADirectoryStaysAsItWasWhereNothingSaysOtherwise() {
    #expect(Zone.containerOwn.hasSameInside(as: .user) && Zone.user.hasSameInside(as: .containerOwn))
    for zone in Zone.allCases {
      #expect(zone.hasSameInside(as: zone))
      for other in Zone.allCases where zone.hasSameInside(as: other) {
        let names = ["Data", "Inbox", "Documents", ".x", "other"]
        #expect(names.allSatisfy { zone.zone(of: $0.utf8) == other.zone(of: $0.utf8) }, "\(zone) \(other)")
      }
    }
  }

  /// Numbers of zones lie in memory that another version of the program takes over.
  @Test func numbersOfZonesStay() {
    #expect(Zone.top.rawValue == 0 && Zone.containerData.rawValue == 19 && Zone.userApp.rawValue == 29)
    #expect(
      Zone.allCases.suffix(11) == [
        .macContainerData, .containerOwn, .trashes, .cloudDocuments, .volumes, .volume, .readOnlyVolume,
        .ownerlessVolume, .readOnlyOwnerlessVolume, .servers, .server,
      ])
    #expect(Zone.allCases.map { Int($0.rawValue) } == Array(Zone.allCases.indices))
  }

  @Test func bothShapesHaveTheSameNames() {
    for name in ["Documents", "Library", "tmp", ".x", ".com.apple.x", "x", "X.app", ""] {
      #expect(Zone.containerData.zone(of: name.utf8) == Zone.macContainerData.zone(of: name.utf8))
    }
    for zone in Zone.allCases {
      #expect(zone.ofMacShape == (zone == .containerData ? .macContainerData : zone))
    }
  }

  @Test func whatWasDeliveredIsSoAllTheWayDown() {
    let inbox = zone(of: "/Users/anna/Library/Containers/com.x/" + ContainerLayout.inboxPath)
    #expect(inbox == .inbox && inbox.isDelivery && inbox.isUnchangeable && inbox.inside == .delivered)
    let deep = ["Data", "Documents", "Inbox", ""].reduce(inbox) { $0.zone(of: $1.utf8) }
    #expect(deep == .delivered && deep.isDelivery && deep.isUnchangeable && deep.inside == .delivered)
    #expect(Zone.allCases.filter(\.isDelivery) == [.inbox, .delivered])
  }

  @Test func domainsKeepTheirMasters() {
    #expect(zone(of: "/System/Library").domain == .system)
    #expect(zone(of: "/Applications/a").domain == .local)
    #expect(zone(of: "/Network/a").domain == .network)
    #expect(zone(of: "/Users/anna").domain == .user)
    #expect(Zone.top.domain == .system)
  }

  @Test func homesHaveElevenDirectoriesAndADropBox() {
    #expect(HomeDirectory.all.filter { !$0.path.contains("/") }.count == 11)
    let open = HomeDirectory.all.filter { $0.mode & 0o077 != 0 }.map(\.path)
    #expect(open == ["Public", "Public/Drop Box"])
  }
}
