// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
package import Policy
internal import PropertyLists
internal import Store

/// A backup in iTunes' form that is read: it may come from anywhere, and nothing in it is believed.
package final class ITunesBackup {
  /// Where it is, for messages.
  package let path: String
  /// The apps of which it has files.
  package private(set) var apps: [AppIdentifier] = []
  package private(set) var groups: [AppIdentifier] = []
  /// Whether it has files that are in no container.
  package private(set) var hasOthers = false
  let directory: OwnedFD
  private let manifest: ManifestDatabase
  /// By domain; backups of other programs say nothing of that.
  private let teams: [String: BackupTeam]

  /// More files than a container has.
  static let mostFiles = 1_000_000

  /// Opens the directory that a person named.
  package init(_ directory: FD, path: String) throws(DataFailure) {
    self.path = path
    self.directory = try explaining("open", path) { () throws(Errno) in try directory.duplicated() }
    do throws(BackupFlaw) {
      let manifest = try Self.list("Manifest.plist", in: directory)
      guard let isEncrypted = manifest["IsEncrypted"]?.boolean else {
        throw BackupFlaw("its Manifest.plist does not say whether it is encrypted")
      }
      if isEncrypted { throw BackupFlaw("") }
      teams = Self.teams(manifest)
      let status = directory.has("Status.plist") ? try Self.list("Status.plist", in: directory) : nil
      if let state = status?["SnapshotState"]?.string, state != "finished" {
        throw BackupFlaw("it was not finished")
      }
      self.manifest = try ManifestDatabase(reading: directory, path: "\(path)/\(ManifestDatabase.name)")
      var (apps, groups): (Set<AppIdentifier>, Set<AppIdentifier>) = ([], [])
      var hasOthers = false
      try self.manifest.eachDomain { domain in
        switch BackupDomain(domain) {
        case .app(let app): apps.insert(app)
        case .group(let group): groups.insert(group)
        case nil: hasOthers = true
        }
      }
      self.hasOthers = hasOthers
      (self.apps, self.groups) = (
        apps.inOrder { $0.text < $1.text }, groups.inOrder { $0.text < $1.text }
      )
    } catch {
      throw error.reason.isEmpty ? .encrypted(path: path) : .badBackup(path: path, reason: error.reason)
    }
  }

  /// Whose apps' data it has of an app, or of a group; nil where it does not say.
  package func team(ofApp app: AppIdentifier) -> BackupTeam? { teams[BackupDomain.app(app).text] }
  package func team(ofGroup group: AppIdentifier) -> BackupTeam? { teams[BackupDomain.group(group).text] }

  private static func teams(_ manifest: PropertyList.Dictionary) -> [String: BackupTeam] {
    var teams: [String: BackupTeam] = [:]
    for entry in manifest[BackupDevice.teamsKey]?.array ?? [] {
      guard let list = entry.dictionary, let domain = list["domain"]?.string, let team = list["team"]?.string
      else { continue }
      teams[domain] = BackupTeam(team, root: list["root"]?.string)
    }
    return teams
  }

  private static func list(_ name: String, in directory: FD) throws(BackupFlaw) -> PropertyList.Dictionary {
    do throws(Errno) {
      let bytes = try directory.contents(of: name, limit: 16 << 20)
      guard let list = try? PropertyList(reading: bytes).dictionary else { throw .EINVAL }
      return list
    } catch .ENOENT {
      throw BackupFlaw("it has no \(name)")
    } catch {
      throw BackupFlaw("its \(name) can't be read")
    }
  }

  /// The files of a domain, each after the directory that it is in; `leftOut` gets the names at the top that
  /// no container has.
  func files(
    of domain: BackupDomain, leftOut: (String) -> Void
  ) throws(DataFailure) -> [ITunesFile] {
    var files: [ITunesFile] = []
    var ignored: Set<[UInt8]> = []
    do throws(BackupFlaw) {
      try manifest.each(of: domain.text) { (row) throws(BackupFlaw) in
        guard let file = try ITunesFile(row, in: domain) else { return }
        let top = file.path.prefix { $0 != UInt8(ascii: "/") }
        guard domain.has(top) else {
          ignored.insert(Array(top))
          return
        }
        if case .app = domain, file.file.flags != 2, top.count == file.path.count,
          !ContainerLayout.isOwnName(top)
        {
          throw BackupFlaw("'\(String(decoding: top, as: UTF8.self))' of \(domain.text) is not a directory")
        }
        guard files.count < Self.mostFiles else { throw BackupFlaw("it lists more files than can be read") }
        files.append(file)
      }
      for name in ignored where !name.elementsEqual(ContainerLayout.metadataName.utf8) {
        leftOut(String(decoding: name, as: UTF8.self))
      }
    } catch {
      throw .badBackup(path: path, reason: error.reason)
    }
    return files.inOrder { $0.precedes($1) }
  }
}

/// A file of a backup, of which all is known to be possible that its row says.
struct ITunesFile {
  /// Below the top of its domain: names that mean nothing else in a path, with slashes between them.
  let path: [UInt8]
  /// What its data are called, which follows from where it is and from nothing else.
  let id: String
  let file: BackedUpFile

  private static let deepest = 250
  private static let longestName = 255

  /// Nil for the top itself.
  init?(_ row: ManifestDatabase.Row, in domain: BackupDomain) throws(BackupFlaw) {
    let shown = String(decoding: row.path, as: UTF8.self)
    func flaw(_ what: String) -> BackupFlaw { BackupFlaw("the file '\(shown)' of \(domain.text): \(what)") }
    path = row.path
    id = try domain.id(of: row.path)
    do throws(BackupFlaw) { file = try BackedUpFile(archive: row.file) } catch { throw flaw(error.reason) }
    guard let flags = file.flags, flags == row.flags else {
      throw flaw("its mode is not that of a file, directory or link, or of another kind than its flags say")
    }
    guard row.id.utf8.elementsEqual(id.utf8) else { throw flaw("its fileID is not the SHA-1 of its path") }
    if row.path.isEmpty, flags == 2 { return nil }
    let names = row.path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard names.count <= Self.deepest else {
      throw flaw("it is nested more than \(Self.deepest) directories deep")
    }
    let isPossible = names.allSatisfy { name in
      !name.isEmpty && name.count <= Self.longestName && !name.contains(0)
        && !name.elementsEqual(".".utf8) && !name.elementsEqual("..".utf8)
    }
    guard isPossible, String(validating: row.path, as: UTF8.self) != nil else {
      throw flaw("its path is not one that a file in a container can have")
    }
    if flags == 4 {
      guard let target = file.target, !target.isEmpty, !target.utf8.contains(0) else {
        throw flaw("it is a link without a target")
      }
    }
  }

  /// By names, so that what is in a directory follows it at once.
  func precedes(_ other: ITunesFile) -> Bool {
    // No name has a zero in it, or a slash.
    let order = { (byte: UInt8) in byte == UInt8(ascii: "/") ? 0 : byte }
    return path.lexicographicallyPrecedes(other.path) { order($0) < order($1) }
  }
}
