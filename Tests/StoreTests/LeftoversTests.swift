// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Store
internal import Synchronization
internal import TestSupport
internal import Testing

/// What is left is removed each by itself, and where others are served, nobody waits for that.
@Suite struct LeftoversTests {
  private final class Gate: Sendable {
    private let isOpen = Condition(false)
    /// Whose removals have been begun.
    let begun = Mutex<[String: Int]>([:])
    /// The end of a test that has failed, too.
    deinit { open() }

    func open() { isOpen.change { $0 = true } }

    /// Removes it, but what is called "held" only when it is let.
    func removal() -> Leftovers.Removal {
      { [self] (directory, name) throws(Errno) in
        let text = String(decoding: name.buffer, as: UTF8.self)
        begun.withLock { $0[text, default: 0] += 1 }
        if text.hasPrefix("held") { _ = isOpen.wait(milliseconds: 60_000) { $0 } }
        try directory.removeTree(name)
      }
    }
  }

  private let temporary: TemporaryDirectory
  private let reports = Reports()
  private final class Reports: Sendable {
    let all = Mutex<[String]>([])
  }

  init() throws { temporary = try TemporaryDirectory() }

  private func remove(_ names: [String], by leftovers: Leftovers, _ removal: @escaping Leftovers.Removal)
    throws
  {
    try leftovers.remove(names.map { Array($0.utf8) }, from: try temporary.open(), removal)
  }

  private func serving(patience: Int) -> Leftovers {
    let leftovers = Leftovers(patience: patience)
    leftovers.servesOthers { [reports] report in reports.all.withLock { $0.append(report) } }
    return leftovers
  }

  private func isGone(_ name: String) -> Bool { (try? temporary.names(in: ".").contains(name)) == false }

  @Test func oneThatHangsIsNamedAndTheRestIsRemoved() throws {
    let names = ["held-a", "b", "held-c", "d"]
    for name in names { try temporary.makeDirectory(name) }
    let (leftovers, gate) = (serving(patience: 20), Gate())
    // Nobody waits.
    try remove(names, by: leftovers, gate.removal())
    #expect(eventually { isGone("b") && isGone("d") })
    #expect(eventually { reports.all.withLock { $0.count } == 2 })
    for name in ["held-a", "held-c"] {
      #expect(!isGone(name))
      #expect(reports.all.withLock { $0.contains { $0.contains(name) } })
    }
    // Whoever comes by meanwhile does not begin with them again.
    try temporary.makeDirectory("e")
    try remove(names + ["e"], by: leftovers, gate.removal())
    #expect(eventually { isGone("e") })
    gate.open()
    #expect(eventually { isGone("held-a") && isGone("held-c") })
    #expect(gate.begun.withLock { $0["held-a"] == 1 && $0["held-c"] == 1 })
    #expect(reports.all.withLock { $0.count } == 2)
  }

  @Test func whatCantBeRemovedIsNamedOnceAndTriedAgain() throws {
    try temporary.makeDirectory("a")
    let leftovers = serving(patience: 60_000)
    let tries = Reports()
    for round in 1...2 {
      try remove(["a", "b\(round)"], by: leftovers) { (_, name) throws(Errno) in
        tries.all.withLock { $0.append(String(decoding: name.buffer, as: UTF8.self)) }
        throw name.buffer.count == 1 ? .EACCES : .ENOENT
      }
      // It comes after the other one.
      #expect(eventually { tries.all.withLock { $0.contains("b\(round)") } })
    }
    #expect(tries.all.withLock { $0.count { $0 == "a" } } == 2)
    #expect(reports.all.withLock { $0.count } == 1)
    #expect(reports.all.withLock { $0.first?.contains("'a'") } == true)
  }

  @Test func whoServesNobodyWaitsAndIsTold() throws {
    for name in ["a", "b"] { try temporary.makeDirectory(name) }
    let leftovers = Leftovers(patience: 0)
    try remove(["missing", "a", "b"], by: leftovers) { (directory, name) throws(Errno) in
      try directory.removeTree(name)
    }
    #expect(isGone("a") && isGone("b"))
    #expect(throws: Errno.EACCES) {
      try remove(["c"], by: leftovers) { (_, _) throws(Errno) in throw .EACCES }
    }
  }
}
