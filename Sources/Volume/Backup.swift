// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
package import Policy
internal import Store

// The view for a backup. Its scope knows the places that are left out; here is what no name says: that
// something is an installed app, or is marked.

extension Volume {
  /// A view of what of the tree is backed up, for a user, whose rights hold in it as ever.
  ///
  /// `encodesLinks`: a program backs up that keeps links right only if their targets are UTF-8.
  package func backupView(
    of extent: BackupExtent, user: UInt32, encodingLinks encodesLinks: Bool = false,
    takingOver taken: UInt32? = nil
  ) throws(Errno) -> View {
    try View(
      self, scope: extent.scope, user: user, isForBackup: true, encodingLinks: encodesLinks,
      takingOver: taken)
  }
}

extension Volume {
  /// Whether something is in a container; false if that can't be told.
  ///
  /// An app marks what is its own. Its users rely on the backup of what they let it work on, by a grant or
  /// since it is entitled to a folder of theirs.
  func isInContainer(_ object: FD) -> Bool {
    guard let names = kernelPath(of: object), names.count > 4 else { return false }
    let directory = names[2...3].map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
    return names[0].elementsEqual("Users".utf8)
      && ContainerKind.allCases.contains { ContainerLayout.directory(of: $0) == directory }
  }
}

extension View {
  /// Whether what has this name is not backed up, whatever its place is.
  ///
  /// What can't be told is backed up.
  func isLeftOut(_ name: Name, _ zone: Zone, in directory: FD) -> Bool {
    BackupSet.reason(in: zone) != nil || volume.metadata.isMarked(name, in: directory)
  }
}

extension Name {
  fileprivate func isName(_ other: StaticString) -> Bool { strcmp(bytes, other.bytes) == 0 }
}

extension BackupMark {
  init?(_ name: Name) {
    guard let mark = Self.allCases.first(where: { name.isName($0.name) }) else { return nil }
    self = mark
  }
}

extension StaticString {
  fileprivate var bytes: UnsafePointer<CChar> {
    UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self)
  }
}
