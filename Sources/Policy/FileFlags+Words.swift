// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A word that stands for no flag that is known here.
package struct UnknownFlag: Error, Equatable, Sendable {
  package let word: String
}

extension FileFlags {
  /// The flags that words stand for, as `chflags` takes them: "uchg,hidden"; nil if one is unknown.
  ///
  /// No words are no flags.
  package init?(words: some StringProtocol) {
    self = []
    do throws(UnknownFlag) {
      try apply(words: words)
    } catch {
      return nil
    }
  }

  /// Sets the flags that words name and clears those that they name with "no" before them.
  ///
  /// Words are parted by commas, spaces or tabs, and count in their order. Nothing changes if one is unknown.
  /// "nodump" is the name of a flag; "dump" clears it.
  package mutating func apply(words: some StringProtocol) throws(UnknownFlag) {
    var result = self
    for word in words.split(whereSeparator: { $0 == "," || $0 == " " || $0 == "\t" }) {
      let word = String(word)
      if let flag = Self.named(word) {
        result.formUnion(flag)
      } else if let flag = Self.clearedBy(word) {
        result.subtract(flag)
      } else {
        throw UnknownFlag(word: word)
      }
    }
    self = result
  }

  /// The words for the flags that are set, as `ls -lO` prints them; empty for none.
  ///
  /// Flags that have no word here are passed over.
  package var words: String {
    Self.spellings.filter { contains($0.flag) }.map { $0.words[0] }.joined(separator: ",")
  }

  private static func named(_ word: String) -> FileFlags? {
    spellings.first { $0.words.contains(word) }?.flag
  }

  private static func clearedBy(_ word: String) -> FileFlags? {
    if word == "dump" { return .noDump }
    guard word.hasPrefix("no"), let flag = named(String(word.dropFirst(2))), flag != .noDump else {
      return nil
    }
    return flag
  }

  /// All spellings, the one that is printed first, in the order of printing.
  private static let spellings: [(flag: FileFlags, words: [String])] = [
    (.systemAppend, ["sappnd", "sappend"]),
    (.archived, ["arch", "archived"]),
    (.systemImmutable, ["schg", "schange", "simmutable"]),
    (.noUnlink, ["sunlnk", "sunlink"]),
    (.userAppend, ["uappnd", "uappend"]),
    (.userImmutable, ["uchg", "uchange", "uimmutable"]),
    (.noDump, ["nodump"]),
    (.opaque, ["opaque"]),
    (.hidden, ["hidden"]),
  ]
}
