// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

/// A backup that lies in a directory, as restic or another program has brought it back: the manifest, the
/// tree, and perhaps the apps.
///
/// Whoever made it may be a stranger. Nothing in it is opened by more than one name at a time, no link is
/// followed, and names are only used where they are those of homes, apps and containers here.
final class RestoredBackup {
  /// For messages.
  let path: String
  let manifest: BackupManifest
  let directory: OwnedFD
  let tree: OwnedFD

  init(_ path: String, _ context: Context) throws {
    self.path = path
    directory = try context.openDirectory(path)
    do throws(Errno) {
      tree = try directory.fd.openDirectory(BackupManifest.treeName)
    } catch {
      throw CommandFailure(
        error,
        "\(path.sanitized) is not a backup that was brought back: it has no '\(BackupManifest.treeName)'")
    }
    manifest = try Self.manifest(in: directory.fd, path)
  }

  private static func manifest(in directory: FD, _ path: String) throws -> BackupManifest {
    let bytes: [UInt8]
    do throws(Errno) {
      bytes = try directory.contents(of: BackupManifest.name, limit: BackupManifest.mostBytes)
    } catch {
      throw CommandFailure(
        error,
        "\(path.sanitized) is not a backup that was brought back: can't read its '\(BackupManifest.name)'")
    }
    return try BackupManifest(reading: bytes)
  }

  /// The homes that there is something of.
  var homes: [String] {
    guard let users = try? tree.fd.openDirectory("Users"), let entries = try? users.fd.entries() else {
      return []
    }
    return entries.compactMap { entry in
      let name = String(decoding: entry.name, as: UTF8.self)
      return name != BackupSet.shared && name.utf8.elementsEqual(entry.name) ? name : nil
    }.inOrder(by: <)
  }

  /// The bundle of an app, if it is part of the backup.
  func bundle(of app: BackupManifest.App) -> OwnedFD? {
    // What is no digest could be any name.
    guard !app.seal.isEmpty, app.seal.utf8.allSatisfy(\.isLowercaseHexadecimal) else { return nil }
    return try? directory.fd.openDirectory(at: "\(BackupManifest.bundlesName)/\(app.seal).app")
  }
}

extension UInt8 {
  /// Whether it is a digit as digests have them.
  var isLowercaseHexadecimal: Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self)
      || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(self)
  }
}
