// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What a person wants to have changed in a set of flags: "uchg,nohidden", "+uchg", "-uchg,uappnd".
///
/// The words are those of `chflags`. A sign in front of a word holds for the words after it too: plus sets,
/// minus clears.
package struct FlagChange: Equatable, Sendable {
  private struct Step: Equatable, Sendable {
    var set: FileFlags = []
    var clear: FileFlags = []
  }

  private let steps: [Step]

  /// Reads it; throws at the first word that is unknown, and at a text without words.
  package init(_ text: String) throws(UnknownFlag) {
    var steps: [Step] = []
    var sign: Character?
    for part in text.split(separator: ",") {
      var word = part
      if let first = word.first, first == "+" || first == "-" {
        sign = first
        word = word.dropFirst()
      }
      steps.append(try Self.step(String(word), sign))
    }
    guard !steps.isEmpty else { throw UnknownFlag(word: text) }
    self.steps = steps
  }

  package func applied(to flags: FileFlags) -> FileFlags {
    steps.reduce(flags) { $0.union($1.set).subtracting($1.clear) }
  }

  private static func step(_ word: String, _ sign: Character?) throws(UnknownFlag) -> Step {
    var nothing: FileFlags = []
    var everything = FileFlags(rawValue: .max)
    try nothing.apply(words: word)
    try everything.apply(words: word)
    let step = Step(set: nothing, clear: FileFlags(rawValue: ~everything.rawValue))
    guard let sign else {
      // Nothing but blanks says nothing.
      guard step != Step() else { throw UnknownFlag(word: word) }
      return step
    }
    // "+nouchg" could mean both.
    guard !step.set.isEmpty else { throw UnknownFlag(word: "\(sign)\(word)") }
    return sign == "+" ? step : Step(clear: step.set)
  }
}
