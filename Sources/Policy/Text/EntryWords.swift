// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The words that Mac's `chmod` reads and `ls` prints for what an entry says.
package enum EntryWords {
  /// A right, by its names on files and on directories, in the order of printing.
  ///
  /// Either name is read on either kind. On files the right to delete children says nothing, and is not
  /// printed.
  static let rights: [(right: Rights, onFiles: String?, onDirectories: String)] = [
    (.read, "read", "list"),
    (.write, "write", "add_file"),
    (.execute, "execute", "search"),
    (.delete, "delete", "delete"),
    (.append, "append", "add_subdirectory"),
    (.deleteChild, nil, "delete_child"),
    (.readAttributes, "readattr", "readattr"),
    (.writeAttributes, "writeattr", "writeattr"),
    (.readExtended, "readextattr", "readextattr"),
    (.writeExtended, "writeextattr", "writeextattr"),
    (.readSecurity, "readsecurity", "readsecurity"),
    (.writeSecurity, "writesecurity", "writesecurity"),
    (.takeOwnership, "chown", "chown"),
  ]

  /// Where an entry goes, in the order of printing.
  static let controls: [(control: AccessControlEntry.Inheritance, word: String, isPrintedOnFiles: Bool)] = [
    (.fileInherit, "file_inherit", false),
    (.directoryInherit, "directory_inherit", false),
    (.limitInherit, "limit_inherit", true),
    (.onlyInherit, "only_inherit", false),
  ]

  static let inherited = "inherited"

  /// All that may stand after the verb, for messages and completion.
  package static let all: [String] =
    rights.compactMap(\.onFiles).filter { word in !rights.contains { $0.onDirectories == word } }
    + rights.map(\.onDirectories) + [inherited] + controls.map(\.word)

  /// The right that a word stands for.
  static func right(_ word: Substring) -> Rights? {
    rights.first { $0.onDirectories == word || $0.onFiles.map { $0 == word } ?? false }?.right
  }

  /// What a word says of inheritance.
  static func inheritance(_ word: Substring) -> AccessControlEntry.Inheritance? {
    word == inherited ? .inherited : controls.first { $0.word == word }?.control
  }
}

extension AccessControlEntry.Kind {
  /// The word that stands between the name and the rights; only the first two are read.
  package var verb: String {
    switch self {
    case .permit: "allow"
    case .deny: "deny"
    case .audit: "audit"
    case .alarm: "alarm"
    }
  }
}
