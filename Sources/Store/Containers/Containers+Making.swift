// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
package import Policy

// What one container consists of.

extension Containers {
  /// Puts a container in its place, or completes the one that is there; tells which directory it is.
  ///
  /// Throws if what is there is another team's, as is noted on it: it may have got there just now. What is
  /// looked at is the directory that is completed.
  func put(
    _ record: ContainerRecord, named name: String, in parent: FD, _ owner: Owner, _ bundle: InstalledApp?,
    for team: Team
  ) throws(StoreError) -> ObjectIdentity {
    let place = "\(path)/\(record.path)"
    var isWhole = false
    let isMissing = try explaining("create the container", place) { () throws(Errno) in
      try status(of: name, in: parent) == nil
    }
    if isMissing {
      try requireNoFlags(against: .addSubdirectory, above: place, on: parent)
      do throws(Errno) {
        try workshop.put(name, in: parent) { (workshop, name) throws(Errno) in
          try build(record, name, in: workshop, owner, bundle)
        }
        isWhole = true
      } catch .EEXIST {
        // Someone has just put one there: the same one, or what was another team's.
      } catch {
        throw StoreError(error, doing: "create the container", path: place)
      }
    }
    try requireDirectory(name, in: parent, owner, place)
    let container = try explaining("open", place) { () throws(Errno) in try parent.openDirectory(name) }
    try requireNoOtherTeam(on: container.fd, record, for: team)
    if !isWhole { try complete(record, container.fd, owner, bundle) }
    return try explaining("note the team of", place) { () throws(Errno) in
      try note(record, on: container.fd)
      return ObjectIdentity(try container.fd.status(), of: container.fd)
    }
  }

  func status(of name: String, in parent: FD) throws(Errno) -> FileStatus? {
    do throws(Errno) {
      return try parent.status(of: name)
    } catch .ENOENT {
      return nil
    }
  }

  /// Makes all of it under a name in the workshop, and forces it to disk.
  private func build(
    _ record: ContainerRecord, _ name: Name, in workshop: FD, _ owner: Owner, _ bundle: InstalledApp?
  ) throws(Errno) {
    try workshop.makeDirectory(name, mode: ContainerLayout.mode)
    let container = try workshop.openDirectory(name)
    for path in ContainerLayout.directories(of: record.kind) {
      try container.fd.withParent(of: path) { (parent, name) throws(Errno) in
        try Self.makeDirectory(name, in: parent, owner)
      }
    }
    if record.kind == .data { try makeTags(in: container.fd, owner) }
    if let metadata = ContainerMetadata(record, gid: owner.gid) {
      try Self.makeFile(ContainerLayout.metadataName, metadata.encoded, in: container.fd, owner)
    }
    if let bundle { try makeLink(to: bundle, record, in: container.fd, owner) }
    for path in ContainerLayout.directories(of: record.kind).reversed() {
      let directory = try container.fd.openDirectory(at: path)
      try directory.fd.synchronize(dataOnly: false)
    }
    try container.fd.changeOwner(uid: owner.uid, gid: owner.gid)
    try container.fd.changeMode(ContainerLayout.mode)
    try note(record, on: container.fd)
    try container.fd.synchronize(dataOnly: false)
  }

  /// Tags the directories that may be purged.
  private func makeTags(in container: FD, _ owner: Owner) throws(Errno) {
    for place in PurgePlace.allCases {
      let directory = try container.openDirectory(at: place.path)
      try Self.makeTag(in: directory.fd, owner)
    }
  }

  /// Makes the tag of a directory, unless something has its name.
  ///
  /// It is not forced to disk: should a crash take it, nothing else is lost.
  static func makeTag(in directory: FD, _ owner: Owner) throws(Errno) {
    do throws(Errno) {
      let tag = try directory.open(
        CacheDirectoryTag.name, O_WRONLY | O_CREAT | O_EXCL, mode: ContainerLayout.metadataMode)
      try tag.fd.writeAll(Array(CacheDirectoryTag.contents.utf8))
      try tag.fd.changeOwner(uid: owner.uid, gid: owner.gid)
    } catch .EEXIST {}
  }

  private static func makeFile(
    _ name: some NameText, _ bytes: [UInt8], in parent: FD, _ owner: Owner
  ) throws(Errno) {
    let file = try parent.open(name, O_WRONLY | O_CREAT | O_EXCL, mode: ContainerLayout.metadataMode)
    try file.fd.writeAll(bytes)
    try file.fd.changeOwner(uid: owner.uid, gid: owner.gid)
    try file.fd.changeMode(ContainerLayout.metadataMode)
    try file.fd.synchronize(dataOnly: false)
  }

  /// The app's bundle, beside the app's own directories.
  private func makeLink(
    to app: InstalledApp, _ record: ContainerRecord, in container: FD, _ owner: Owner
  ) throws(Errno) {
    let data = try container.openDirectory(ContainerLayout.dataName)
    try Self.makeLink(app.bundleName, to: Self.target(of: app, record), in: data.fd, owner)
  }

  private static func makeLink(
    _ name: some NameText, to target: String, in parent: FD, _ owner: Owner
  ) throws(Errno) {
    try parent.makeSymlink(name, to: target)
    let link = try parent.child(name)
    try link.fd.changeOwner(uid: owner.uid, gid: owner.gid)
  }

  /// What the link in a container has in it that leads to the bundle of its app.
  static func target(of app: InstalledApp, _ record: ContainerRecord) -> String {
    ContainerLayout.target(
      of: "\(record.path)/\(ContainerLayout.dataName)/\(app.bundleName)", to: app.path)
  }

  // MARK: Completing

  /// Makes what is missing of a directory that is about to be this container, and tells which one it is;
  /// `parent` is that of the container.
  ///
  /// Both this directory and the one whose place it takes have it noted that they are the container: whoever
  /// is stopped at any moment leaves one of them there.
  package func complete(
    _ record: ContainerRecord, _ directory: FD, in parent: FD, _ bundle: InstalledApp?
  ) throws(StoreError) -> ObjectIdentity {
    let containers = try forHomeThatIsThere(record.path)
    let place = "\(path)/\(record.path)"
    let owner = Owner(try explaining("examine", place) { () throws(Errno) in try parent.status() })
    let present = try explaining("open", place) { () throws(Errno) in
      try parent.openDirectory(record.path.splitAtName.name)
    }
    if let team = record.team { try containers.requireNoOtherTeam(on: present.fd, record, for: team) }
    try containers.complete(record, directory, owner, bundle)
    try explaining("note the team of", place) { () throws(Errno) in
      try containers.note(record, on: present.fd)
      try containers.note(record, on: directory)
    }
    return try explaining("examine", place) { () throws(Errno) in
      ObjectIdentity(try directory.status(), of: directory)
    }
  }

  /// Makes what is missing of a container that is noted and there; the link in it leads to its app, if that
  /// is installed.
  func complete(_ record: ContainerRecord, _ apps: [InstalledApp]) throws(StoreError) {
    let (above, name) = record.path.splitAtName
    let parent = try explaining("open", "\(path)/\(above)") { () throws(Errno) in
      try tree.fd.openDirectory(at: above)
    }
    let app =
      record.kind != .data
      ? nil
      : apps.first {
        $0.identifier == record.identifier && ($0.user ?? record.user) == record.user
          && $0.signer == record.team
      }
    let containers = try forHomeThatIsThere(record.path)
    let owner = Owner(
      try explaining("examine", "\(path)/\(record.path)") { () throws(Errno) in try parent.fd.status() })
    try containers.complete(record, named: name, in: parent.fd, owner, app)
  }

  private func complete(
    _ record: ContainerRecord, named name: String, in parent: FD, _ owner: Owner, _ bundle: InstalledApp?
  ) throws(StoreError) {
    let place = "\(path)/\(record.path)"
    try requireDirectory(name, in: parent, owner, place)
    let container = try explaining("open", place) { () throws(Errno) in try parent.openDirectory(name) }
    try complete(record, container.fd, owner, bundle)
  }

  /// Makes what is missing of a container that is there.
  private func complete(
    _ record: ContainerRecord, _ container: FD, _ owner: Owner, _ bundle: InstalledApp?
  ) throws(StoreError) {
    let place = "\(path)/\(record.path)"
    for path in ContainerLayout.directories(of: record.kind) {
      let (above, name) = path.splitAtName
      let parent = try explaining("open", "\(place)/\(above)") { () throws(Errno) in
        try container.openDirectory(at: above)
      }
      try requireDirectory(name, in: parent.fd, owner, "\(place)/\(path)")
    }
    try explaining("complete the container", place) { () throws(Errno) in
      if record.kind == .data { try makeTags(in: container, owner) }
      if let metadata = ContainerMetadata(record, gid: owner.gid) {
        try completeMetadata(metadata, in: container, owner)
      }
      if let bundle { try completeLink(to: bundle, record, in: container, owner) }
    }
  }

  func completeMetadata(
    _ metadata: ContainerMetadata, in container: FD, _ owner: Owner
  ) throws(Errno) {
    let known = try? container.contents(of: ContainerLayout.metadataName, limit: 1 << 16)
    if known.flatMap({ ContainerMetadata($0) }) == metadata { return }
    try workshop.put(ContainerLayout.metadataName, in: container, flags: 0) {
      (workshop, name) throws(Errno) in
      try Self.makeFile(name, metadata.encoded, in: workshop, owner)
    }
  }

  /// The link to the bundle as it is now; one to a bundle of another name goes.
  private func completeLink(
    to app: InstalledApp, _ record: ContainerRecord, in container: FD, _ owner: Owner
  ) throws(Errno) {
    let data = try container.openDirectory(ContainerLayout.dataName)
    let target = Self.target(of: app, record)
    var isThere = false
    for entry in try data.fd.entries(where: ContainerLayout.isBundleLink) {
      let isOurs = entry.name.elementsEqual(app.bundleName.utf8)
      if isOurs, (try? data.fd.linkTarget(of: entry.name))?.elementsEqual(target.utf8) == true {
        isThere = true
      } else if !isOurs {
        try workshop.remove(entry.name, from: data.fd)
      }
    }
    guard !isThere else { return }
    try workshop.put(app.bundleName, in: data.fd, flags: 0) { (workshop, name) throws(Errno) in
      try Self.makeLink(name, to: target, in: workshop, owner)
    }
  }
}

extension ContainerLayout {
  /// Whether something in an app's home is the link to its bundle, of which there may be one to an earlier
  /// one; links with a dot are the app's.
  package static func isBundleLink(_ name: Name, _ type: UInt8) -> Bool {
    type == UInt8(DT_LNK) && !isOwnName(name.buffer)
  }
}
