// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Guesses what a person meant by a word that means nothing.
enum Suggestion {
  /// " (did you mean 'mount'?)", or nothing: a wrong guess is worse than none.
  ///
  /// `written` says how a word is typed where it is meant.
  static func text(
    for word: String, among known: [String], written: (String) -> String = { $0 }
  ) -> String {
    question(closest(to: word, among: known).prefix(3).map(written))
  }

  /// Asks for one of several words; nothing where there are none.
  static func question(_ words: [String]) -> String {
    words.isEmpty ? "" : " (did you mean \(words.map { "'\($0)'" }.joined(separator: " or "))?)"
  }

  /// The known words that differ least from this one: in two letters at most, and in no more than a third.
  static func closest(to word: String, among known: [String]) -> [String] {
    // Longer ones are no words, and comparing takes time.
    guard word.utf8.count <= 64 else { return [] }
    let letters = Array(word.lowercased().unicodeScalars)
    var least = min(2, letters.count / 3)
    var found: [String] = []
    for other in known where !found.contains(other) {
      let difference = distance(letters, Array(other.lowercased().unicodeScalars))
      if difference < least { found = [] }
      if difference <= least {
        found.append(other)
        least = difference
      }
    }
    return found
  }

  /// In how many letters two words differ: one more, one less, another one, or two that are exchanged.
  static func distance(_ one: [Unicode.Scalar], _ other: [Unicode.Scalar]) -> Int {
    // Rows of the table of all beginnings of both: the last one, and the one before it.
    var before: [Int] = []
    var last = Array(0...other.count)
    for (i, letter) in one.enumerated() {
      var row = [i + 1]
      for (j, otherLetter) in other.enumerated() {
        var least = min(last[j + 1] + 1, row[j] + 1, last[j] + (letter == otherLetter ? 0 : 1))
        if i > 0, j > 0, letter == other[j - 1], one[i - 1] == otherLetter {
          least = min(least, before[j - 1] + 1)
        }
        row.append(least)
      }
      (before, last) = (last, row)
    }
    return last[other.count]
  }
}
