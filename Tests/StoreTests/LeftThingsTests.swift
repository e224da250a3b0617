// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
@testable internal import Store
internal import Synchronization
internal import TestSupport
internal import Testing

/// What a daemon was stopped in is out of the next one's way at once, and removed later.
struct LeftThingsTests {
  private let made: TestStore
  private let store: Store

  init() throws {
    made = try TestFixture().made
    store = try Store(opening: made.path, .exclusive)
  }

  private func staged() throws -> [String] { try made.temporary.names(in: "store/state/staging").sorted() }

  private func leave(_ name: String) throws {
    try made.temporary.makeDirectory("store/state/staging/\(name)")
    try made.temporary.write("x", to: "store/state/staging/\(name)/file")
  }

  @Test func leftThingsArePutAsideAndRemoved() throws {
    try leave("install-1-A")
    try leave("doomed-B")
    _ = try Store.openParts(of: store.directory)
    let aside = try staged()
    #expect(aside.count == 2 && aside.allSatisfy { $0.hasPrefix("left-") }, "\(aside)")
    for name in aside { #expect(try made.temporary.names(in: "store/state/staging/\(name)") == ["file"]) }
    // What this process has there itself stays.
    try leave("install-2-C")
    try store.removeLeft()
    #expect(try staged() == ["install-2-C"])
  }

  /// Each daemon may be stopped before it has removed anything.
  @Test func stoppedAgainAndAgain() throws {
    for round in 0..<50 {
      try leave("install-\(round)-A")
      _ = try Store.openParts(of: store.directory)
    }
    #expect(try staged().count == 50)
    #expect(try staged().allSatisfy { $0.hasPrefix("left-") })
    try store.removeLeft()
    #expect(try staged().isEmpty)
    // Nothing is made where nothing was left.
    _ = try Store.openParts(of: store.directory)
    #expect(try staged().isEmpty)
  }

  private final class Failures: Sendable {
    let count = Atomic<Int>(0)
  }

  @Test func severalMayRemoveAtOnce() throws {
    for round in 0..<20 { try leave("left-\(round)") }
    let failures = Failures()
    let threads = try (0..<4).map { _ in
      try JoinableThread(name: "remover") { [store] in
        do { try store.removeLeft() } catch { failures.count.wrappingAdd(1, ordering: .relaxed) }
      }
    }
    for thread in threads { thread.join() }
    #expect(failures.count.load(ordering: .relaxed) == 0)
    #expect(try staged().isEmpty)
  }
}
