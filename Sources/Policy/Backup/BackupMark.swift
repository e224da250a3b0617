// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The extended attributes by which files and directories are left out of backups.
///
/// They are ordinary attributes of users, so they go along with what they are on wherever that is copied, and
/// other programs on the machine read and set them too.
package enum BackupMark: CaseIterable, Sendable {
  /// Apple's: whatever its value, it counts.
  case apple
  /// freedesktop.org's: it counts where its value is "false".
  case freedesktop

  package var name: StaticString {
    switch self {
    case .apple: "user.com.apple.metadata:com_apple_backup_excludeItem"
    case .freedesktop: "user.xdg.robots.backup"
    }
  }

  /// The value that leaves something out.
  package var value: [UInt8] {
    switch self {
    case .apple: Self.propertyList
    case .freedesktop: Array("false".utf8)
    }
  }

  /// Whether a value leaves something out.
  package func excludes(_ value: some Collection<UInt8>) -> Bool {
    switch self {
    case .apple: true
    case .freedesktop: value.elementsEqual("false".utf8)
    }
  }

  /// The binary property list of the text "com.apple.backupd", as Apple's library writes it.
  private static let propertyList: [UInt8] = {
    let text = Array("com.apple.backupd".utf8)
    let object = [0x5F, 0x10, UInt8(text.count)] + text
    let table = [UInt8(8)]
    let number = { (value: Int) in [0, 0, 0, 0, 0, 0, 0, UInt8(value)] }
    let trailer = [0, 0, 0, 0, 0, 0, 1, 1] + number(1) + number(0) + number(8 + object.count)
    return Array("bplist00".utf8) + object + table + trailer
  }()
}
