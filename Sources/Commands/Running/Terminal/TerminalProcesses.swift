// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// The processes that stand between a command and the terminals of its caller.
struct TerminalProcesses: Equatable {
  /// The process that keeps the command's own terminal, whose parent relays; nil if there is none.
  var keeper: Int32?
  /// The process that copies output to terminals of other sessions; nil if there is none.
  var copier: Int32?

  /// Tells a fresh image of this program, by the variable's words, which of them there are.
  static let variable = "INSULA_TERMINAL"
  private enum Word: String { case own, copied }

  init(keeper: Int32? = nil, copier: Int32? = nil) {
    self.keeper = keeper
    self.copier = copier
  }

  /// Nil if a caller's variables say nothing about them.
  init?(_ environment: [String: String]) {
    let words = (environment[Self.variable] ?? "").parts(between: ",").compactMap {
      Word(rawValue: String($0))
    }
    guard !words.isEmpty else { return nil }
    keeper = words.contains(.own) ? getsid(0) : nil
    guard words.contains(.copied) else { return }
    copier = keeper == nil ? getppid() : relay.flatMap(Self.parent)
  }

  /// What a fresh image must be told; nil if there are none.
  var value: String? {
    let words = [keeper.map { _ in Word.own }, copier.map { _ in Word.copied }].compactMap { $0?.rawValue }
    return words.isEmpty ? nil : words.joined(separator: ",")
  }

  private var relay: Int32? { keeper.flatMap(Self.parent) }

  /// All processes of this `insula run`: ours, and those.
  var all: Set<Int32> { Set([getpid(), keeper, relay, copier].compactMap { $0 }) }

  private static func parent(of pid: Int32) -> Int32? {
    ProcessID.field("PPid", of: "\(pid)").flatMap { Int32($0) }
  }
}
