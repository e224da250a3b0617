// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// The names that editors, and other programs that replace a file in one step, give what they write beside it.

/// Whether editors of a file of that name put something of this name beside it.
package func isSiblingName(_ name: [UInt8], of file: [UInt8]) -> Bool {
  guard !file.isEmpty, !name.isEmpty, name != file else { return false }
  if isTemporaryName(name[...]) { return true }
  // What comes before and after the file's own name.
  for before in SiblingPattern.before {
    guard let after = name.dropping(before.utf8)?.dropping(file) else { continue }
    if isEnding(after, isHidden: before == "." || file.first == UInt8(ascii: ".")) { return true }
  }
  return SiblingPattern.around.contains { before, after in
    name.dropping(before.utf8)?.dropping(file)?.elementsEqual(after.utf8) == true
  }
}

private enum SiblingPattern {
  static let before = ["", "."]

  /// What is in the same place for every file.
  static let around: [(String, String)] = [
    // Emacs: what is not saved yet, and the lock.
    ("#", "#"), (".#", ""),
    // LibreOffice.
    (".~lock.", "#"),
  ]

  static let endings: [String] = [
    "~", ".tmp", ".temp", ".new", ".bak", ".old", ".orig", ".part", ".save", ".backup", ".lock", ".vsctmp",
    // JetBrains.
    "___jb_tmp___", "___jb_old___",
    // SQLite.
    "-journal", "-wal", "-shm",
  ]
}

/// Names that do not tell which file they are for.
private func isTemporaryName(_ name: ArraySlice<UInt8>) -> Bool {
  // GLib, GNU sed, Python's tempfile, mktemp(1), Emacs.
  if name.dropping(".goutputstream-".utf8)?.isRandom(6...6) == true { return true }
  if name.dropping("sed".utf8)?.isRandom(6...6) == true { return true }
  if name.dropping("tmp".utf8)?.isRandom(8...8) == true { return true }
  if name.dropping("tmp.".utf8)?.isRandom(10...10) == true { return true }
  if name.dropping(".#-emacs".utf8)?.isRandom(6...6) == true { return true }
  // LibreOffice: lu123abc.tmp.
  if let rest = name.dropping("lu".utf8), rest.suffix(4).elementsEqual(".tmp".utf8) {
    return rest.dropLast(4).isRandom(4...16)
  }
  return isProbe(name)
}

/// Vim finds out by a file of this name whether it may make one: 4913, and every 123rd number after it
/// where that is taken.
private func isProbe(_ name: ArraySlice<UInt8>) -> Bool {
  guard (4...5).contains(name.count), name.first != UInt8(ascii: "0"), name.isNumber else { return false }
  let number = name.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
  return number >= 4913 && (number - 4913) % 123 == 0
}

/// What comes after the file's name.
private func isEnding(_ ending: ArraySlice<UInt8>, isHidden: Bool) -> Bool {
  if SiblingPattern.endings.contains(where: { ending.elementsEqual($0.utf8) }) { return true }
  // SQLite, where a transaction is in several databases.
  if ending.dropping("-mj".utf8)?.isRandom(9...9) == true { return true }
  guard let rest = ending.dropping(".".utf8) else { return false }
  // Vim: .letter.swp, .swo and so on.
  let isSwap = rest.count == 3 && rest.first == UInt8(ascii: "s") && rest.allSatisfy(\.isLowercase)
  if isHidden, isSwap { return true }
  // mkstemp(3), KDE, rsync; and numbers, as of a process or a time.
  if rest.isRandom(6...6) || isHidden && rest.isRandom(4...8) { return true }
  if rest.isNumber, rest.count <= 10 { return true }
  if rest.suffix(4).elementsEqual(".tmp".utf8), rest.dropLast(4).isRandom(4...10) { return true }
  // Emacs, with numbers: letter.~1~.
  if let number = rest.dropping("~".utf8), number.last == UInt8(ascii: "~") {
    return number.dropLast().isNumber && number.count <= 5
  }
  // A Mac: letter.sb-1a2b3c4d-AbCdEf.
  if let random = rest.dropping("sb-".utf8), (4...20).contains(random.count) {
    return random.allSatisfy { $0.isRandom || $0 == UInt8(ascii: "-") }
  }
  return false
}

extension Collection where Element == UInt8, SubSequence == ArraySlice<UInt8> {
  /// The rest after what it must begin with; nil if it does not.
  fileprivate func dropping(_ prefix: some Collection<UInt8>) -> ArraySlice<UInt8>? {
    starts(with: prefix) ? dropFirst(prefix.count) : nil
  }
}

extension ArraySlice<UInt8> {
  fileprivate func isRandom(_ counts: ClosedRange<Int>) -> Bool {
    counts.contains(count) && allSatisfy(\.isRandom)
  }

  fileprivate var isNumber: Bool { !isEmpty && allSatisfy(\.isDigit) }
}

extension UInt8 {
  fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
  fileprivate var isLowercase: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self) }

  /// What names for one moment are made of.
  fileprivate var isRandom: Bool {
    isDigit || isLowercase || self == UInt8(ascii: "_")
      || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self)
  }
}
