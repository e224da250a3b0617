// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// What the value of a key must be.
enum ConfigurationValue: Sendable {
  /// The same for everyone.
  case path
  /// From the root, or from the home of whoever runs the command.
  case pathOrInHome
  case mountOptions
  /// A name, with words for what it names.
  case name(String)
  /// Which backups are kept.
  case backupKeep

  /// For the manual.
  var help: String {
    switch self {
    case .path: "a path that begins with '/'"
    case .pathOrInHome: "a path that begins with '/' or '~/'"
    case .mountOptions: "mount options, separated by commas; 'insula help mount-options' lists them"
    case .name(let what): what
    case .backupKeep: BackupKeep.words
    }
  }

  /// Why a text can't be the value, and what would be right; nil if it can.
  func refusal(of text: String) -> String? {
    switch self {
    case .path: return text.begins(with: "/") ? nil : "'\(text)' is not \(help)"
    case .pathOrInHome:
      return text.begins(with: "/") || text.begins(with: "~/") ? nil : "'\(text)' is not \(help)"
    case .name(let what): return text.isEmpty ? "is empty; it must be \(what)" : nil
    case .backupKeep: return BackupKeep(text) == nil ? "'\(text)' is not \(help)" : nil
    case .mountOptions:
      do throws(MountOptions.Refusal) {
        let options = try MountOptions(reading: [text])
        return options.isRemount ? "'remount' changes a mount that is there; give it with '-o'" : nil
      } catch {
        return error.message
      }
    }
  }
}
