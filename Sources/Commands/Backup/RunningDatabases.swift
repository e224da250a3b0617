// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// The SQLite databases of apps that run while a backup is made.
///
/// A program that backs up reads a database piece by piece, and what it gets is of several moments, which no
/// database survives. So each of them is copied first, while it is held.
final class RunningDatabases {
  private let context: Context
  /// Paths in the tree, by whose they are.
  private let containers: [UInt32: Set<String>]
  private let copy: DataCopy
  /// The paths in the tree of what stands beside databases that were copied: of no use without those.
  private(set) var companions: Set<String> = []
  /// Whether one was not copied that is in use.
  private(set) var isIncomplete = false

  /// What the databases of one user's apps may still take: an app can make as many as it likes, keep them for
  /// itself, and change them whenever they have been copied.
  private struct Share {
    var databases = 10_000
    /// In the directory that they are copied to, and of the time that it takes.
    var bytes: Int64
    /// For how much longer it is waited for those in use, in steps.
    var patience: Int
  }

  private static let patienceForOne = 3000
  private static let patienceForAll = 60_000
  /// In microseconds: whoever writes all the time lets go of the database for less than a millisecond.
  private static let step: UInt32 = 1000
  /// How often one is copied that is another file afterwards.
  private static let mostCopies = 3

  /// Finds the containers of those that run; of these apps alone if some are named.
  init(_ access: any StoreAccess, user: UInt32?, only chosen: [AppIdentifier]) throws {
    context = access.context
    var found: [UInt32: Set<String>] = [:]
    for running in try access.running(for: access.orOneself(user)) {
      guard let identifier = AppIdentifier(running.identifier),
        chosen.isEmpty || chosen.contains(where: { $0.isSame(as: identifier) }),
        let home = try? access.home(of: running.user),
        let app = try? access.app(identifier, for: running.user)
      else { continue }
      for (kind, names) in [
        (ContainerKind.data, [identifier]), (.group, app.groups.compactMap { AppIdentifier($0) }),
        (.cloud, app.clouds.compactMap { AppIdentifier($0) }),
      ] {
        found[running.user, default: []].formUnion(
          names.map { "\(home)/\(ContainerLayout.path(of: $0, kind))" })
      }
    }
    containers = found
    var rules = DataCopy.Rules(from: .mount, to: .package)
    rules.keepsOwners = ProcessID.user == 0
    // A flag would stand against the copy's removal; it comes back with the file itself.
    rules.keepsSystemFlags = false
    copy = DataCopy(rules)
  }

  var isEmpty: Bool { containers.isEmpty }

  /// Copies all of them, to their paths in another directory.
  ///
  /// Half of the room that there is stays for who makes the backup, and the other half is for all users
  /// alike.
  func copy(from tree: FD, to place: FD) {
    let users = max(1, containers.count)
    let room = ((try? place.diskSpace().free) ?? 0) / 2 / Int64(users)
    for user in containers.keys.inOrder(by: <) {
      var share = Share(bytes: room, patience: max(Self.patienceForOne, Self.patienceForAll / users))
      for path in (containers[user] ?? []).inOrder(by: <) { copy(path, from: tree, to: place, &share) }
    }
  }

  private func copy(_ path: String, from tree: FD, to place: FD, _ share: inout Share) {
    guard let container = try? tree.openDirectory(at: path) else { return }
    var rest = share
    _ = try? DeepWalk.through(container.fd, mostWaiting: 100_000) { (entry) throws(Errno) in
      if entry.type == DT_DIR { return true }
      guard entry.type == DT_REG || entry.type == DT_UNKNOWN,
        DatabaseHold.database(ofCompanion: entry.name) == nil,
        let status = try? entry.directory.status(of: entry.name), DatabaseHold.canBe(status)
      else { return false }
      let names = path.parts(between: "/").map { Array($0.utf8) } + entry.path
      do throws(Errno) {
        if try copyDatabase(entry.name, in: entry.directory, names.dropLast(), place, &rest) {
          companions.formUnion(
            DatabaseHold.suffixes.map { Self.text(names) + String(decoding: $0, as: UTF8.self) })
        }
      } catch {
        note(names, error)
      }
      return false
    }
    share = rest
  }

  private func note(_ names: [[UInt8]], _ error: Errno) {
    // It was removed, or can't be read, which whoever backs up says.
    if error == .ENOENT || error == .EACCES || error == .EPERM { return }
    isIncomplete = true
    let why =
      switch error {
      case .EBUSY: "an app has it for itself, or changes it all the time"
      case .EMFILE: "its user's apps have too many"
      case .ENOSPC: "there is no room for a copy; TMPDIR can name another directory"
      default: error.message
      }
    context.console.note(
      "\(Self.text(names).sanitized): this database is in use, and is backed up as it is read (\(why))")
  }

  private static func text(_ names: [[UInt8]]) -> String {
    names.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
  }

  /// False if it is no database; EBUSY if its app does not let go of it.
  private func copyDatabase(
    _ name: [UInt8], in directory: FD, _ above: ArraySlice<[UInt8]>, _ place: FD, _ share: inout Share
  ) throws(Errno) -> Bool {
    var copies = 0
    for _ in 0..<Self.patienceForOne {
      do throws(Errno) {
        guard let hold = try DatabaseHold.take(name, in: directory) else { return false }
        guard share.databases > 0 else { throw .EMFILE }
        let target = try Self.directory(above, in: place)
        let files = hold.files
        var bytes: Int64 = 0
        for file in files {
          bytes = bytes.adding(
            clamped: try file.fd.use { (fd) throws(Errno) in Int64(try fd.status().st_size) })
        }
        guard bytes <= share.bytes else { throw .ENOSPC }
        share.bytes -= bytes
        var isWhole = false
        defer { if !isWhole { for file in files { try? target.fd.removeTree(file.name) } } }
        copies += 1
        isWhole = try copyFiles(files, to: target.fd) && hold.isKept(in: directory)
        if isWhole {
          share.databases -= 1
          return true
        }
        guard copies < Self.mostCopies else { break }
      } catch {
        guard error == .EBUSY else { throw error }
      }
      guard share.patience > 0 else { break }
      share.patience -= 1
      // A wait for a lock has no end of its own.
      usleep(Self.step)
    }
    throw .EBUSY
  }

  /// False if one of them was removed meanwhile.
  ///
  /// What is held is copied, and not what has its name by now: that may be a directory of any size.
  private func copyFiles(_ files: [DatabaseHold.File], to target: FD) throws(Errno) -> Bool {
    do throws(TreeCopyFailure) {
      for file in files { try copy.copy(file: file.fd, named: file.name, in: target) }
      return true
    } catch {
      guard case .failed(_, let code) = error.reason else { throw .EIO }
      guard code == .ENOENT else { throw code }
      return false
    }
  }

  /// Makes the directories on the way as far as they are missing.
  private static func directory(_ names: ArraySlice<[UInt8]>, in place: FD) throws(Errno) -> OwnedFD {
    var here = try place.duplicated()
    for name in names {
      do throws(Errno) { try here.fd.makeDirectory(name, mode: 0o700) } catch {
        guard error == .EEXIST else { throw error }
      }
      here = try here.fd.openDirectory(name)
    }
    return here
  }
}
