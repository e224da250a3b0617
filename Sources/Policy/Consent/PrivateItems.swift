// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What is private without being a file: apps are told of it, and get no file that it is in.
///
/// By a word that apps and commands have, the same in all versions.
package enum PrivateItems: String, Codable, CaseIterable, Sendable {
  case songs, contacts, events, reminders

  /// What the user's consent is to.
  package var service: PrivacyService {
    switch self {
    case .songs: .mediaLibrary
    case .contacts: .contacts
    case .events: .calendars
    case .reminders: .reminders
    }
  }

  /// The directory that holds them, in a user's home.
  package var directory: [String] { service.folder.split(separator: "/").map(String.init) }

  /// Whether a file of this name may hold some.
  package func mayBe(inFileNamed name: [UInt8]) -> Bool { fileExtension(of: name) != nil }

  /// The extension of such a file's name, one of ours.
  package func fileExtension(of name: [UInt8]) -> String? {
    fileExtensions.first { Self.hasExtension(name, $0) }
  }

  /// In small letters.
  package var fileExtensions: [String] {
    switch self {
    case .songs: Self.songExtensions
    case .contacts: ["vcf", "vcard"]
    case .events, .reminders: ["ics"]
    }
  }

  private static let songExtensions = [
    "mp3", "m4a", "m4b", "m4p", "aac", "flac", "ogg", "oga", "opus", "spx", "wav", "aif", "aiff", "wma",
    "ape", "mpc", "wv", "tta",
  ]

  private static func hasExtension(_ name: [UInt8], _ word: String) -> Bool {
    let end = name.suffix(word.utf8.count + 1)
    // What is nothing but an extension is hidden.
    guard name.count > end.count, end.first == UInt8(ascii: ".") else { return false }
    return zip(end.dropFirst(), word.utf8).allSatisfy { byte, letter in
      byte == letter || byte >= 0x41 && byte <= 0x5a && byte | 0x20 == letter
    }
  }
}
