// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// A password that a person types, and that the terminal does not show.
enum TypedPassword {
  private static let limit = 1024

  /// Asks for it, twice where it is a new one.
  ///
  /// `what` is what it opens, and `instead` how it can be given without a terminal.
  static func ask(isNew: Bool, of what: String, instead: String, _ context: Context) throws -> [UInt8] {
    guard context.hasTerminal else {
      throw CommandFailure(
        .usage,
        "the password of \(what) is not known, and there is no terminal to ask for it; give \(instead)")
    }
    let password = try read(
      isNew ? "new password of \(what): " : "password of \(what): ", context.console)
    guard !password.isEmpty else { throw CommandFailure(.failed, "the password is empty; nothing was done") }
    if isNew, try read("the same once more: ", context.console) != password {
      throw CommandFailure(.failed, "these were two different passwords; nothing was done")
    }
    return password
  }

  private static func read(_ prompt: String, _ console: Console) throws -> [UInt8] {
    let terminal = FD(0)
    let before = try terminal.terminalAttributes()
    var hidden = before
    // Letter by letter, and ^C too, so that the terminal is as before whatever is typed.
    hidden.c_lflag &= ~tcflag_t(ICANON | ECHO | ISIG)
    try terminal.set(terminalAttributes: hidden)
    console.ask(prompt)
    var typed: [UInt8] = []
    // So that no copy is left behind when it grows.
    typed.reserveCapacity(limit)
    let isWhole = Result { () throws(Errno) in try readLine(into: &typed) }
    try terminal.set(terminalAttributes: before)
    console.ask("\n")
    guard try isWhole.get(), String(validating: typed, as: UTF8.self) != nil else {
      throw CommandFailure(.failed, "no password was given; nothing was done")
    }
    return typed
  }

  /// False if it was broken off.
  private static func readLine(into typed: inout [UInt8]) throws(Errno) -> Bool {
    while let bytes = try FD(0).readAvailable(limit: 64) {
      for byte in bytes {
        switch byte {
        case 10, 13: return true
        case 3, 4, 28: return false
        case 8, 127: typed = Array(String(decoding: typed, as: UTF8.self).dropLast().utf8)
        case 21: typed = []
        default: if typed.count < limit { typed.append(byte) }
        }
      }
    }
    return false
  }
}
