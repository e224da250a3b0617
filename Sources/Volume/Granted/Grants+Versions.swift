// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
package import Policy
internal import Store
internal import Synchronization

// What those who only read grants cost.
//
//  1. An app waits for changes of what it was granted by a version. The version of a holder is the sum of the
//     marks of its grants, which each change of a grant changes too. So asking costs the same however many
//     grants there are, and nobody else's changes can be seen in it.
//  2. The mark of a grant is a hash of what its app sees of it, so the next worker gives the same version.
//     A rename does not walk paths (rule 6 of `Grants.swift`): a grant that was moved has a mark by lot. The
//     next worker gives another version then, and the app is told once too often.
//  3. A page costs as much as it is long. The numbers of a holder are kept in order, and records are put
//     together for the page alone.
//  4. Nobody holds the lock for longer than it takes to put some records together: renames and the thread of
//     the apps' sockets wait for it.

/// An app of a user that was granted something.
package struct GrantedApp: Sendable {
  package let identifier: AppIdentifier
  package let user: UInt32

  package init(identifier: AppIdentifier, user: UInt32) {
    self.identifier = identifier
    self.user = user
  }
}

extension Grants {
  private static let recordsAtOnce = 64

  func records(_ numbers: [Int64]) -> [GrantRecord] {
    var found: [GrantRecord] = []
    found.reserveCapacity(numbers.count)
    var rest = numbers[...]
    while !rest.isEmpty {
      let some = rest.prefix(Self.recordsAtOnce)
      rest = rest.dropFirst(some.count)
      found += state.withLock { state in some.compactMap { state.record($0) } }
    }
    recordsRead.add(found.count, ordering: .relaxed)
    return found
  }

  var all: [GrantRecord] { records(numbers.inOrder(by: <)) }

  /// What the apps of all teams were granted that have that name.
  func records(of name: GrantHolder.Name) -> [GrantRecord] {
    records(numbers(after: 0, limit: .max) { $0.name == name })
  }

  /// The numbers of a holder's grants after one of them, in order.
  func numbers(of holder: GrantHolder, after number: Int64 = 0, limit: Int = .max) -> [Int64] {
    state.withLock { state in Array(state.ids[holder]?.after(number).prefix(limit) ?? []) }
  }

  /// The same of all holders that are meant.
  func numbers(after number: Int64, limit: Int, _ isMeant: (GrantHolder) -> Bool) -> [Int64] {
    let found = state.withLock { state in
      state.ids.filter { isMeant($0.key) }.flatMap { $0.value.after(number).prefix(limit) }
    }
    return Array(found.inOrder(by: <).prefix(limit))
  }

  func version(of holder: GrantHolder) -> UInt64 { state.withLock { $0.versions[holder] ?? 0 } }

  /// The apps that some grants are for.
  func apps(of numbers: some Sequence<Int64>) -> [GrantedApp] {
    let found = state.withLock { state in
      var found: [GrantHolder: AppIdentifier] = [:]
      for number in numbers {
        if let placed = state.entries[number] { found[placed.holder] = placed.record.identifier }
      }
      return found
    }
    return found.map { GrantedApp(identifier: $0.value, user: $0.key.name.user) }
  }

  /// What an app sees of a grant, as a number that is the same in every process that serves (FNV-1a).
  static func mark(of record: GrantRecord) -> UInt64 {
    var sum: UInt64 = 0xcbf2_9ce4_8422_2325
    func add(_ byte: UInt8) { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01b3 }
    withUnsafeBytes(of: record.id) { $0.forEach(add) }
    add(record.isWritable ? 1 : 0)
    for name in record.path {
      add(UInt8(ascii: "/"))
      name.forEach(add)
    }
    // Marks are added up, so each bit must depend on all that was hashed.
    sum = (sum ^ sum >> 30) &* 0xbf58_476d_1ce4_e5b9
    sum = (sum ^ sum >> 27) &* 0x94d0_49bb_1331_11eb
    return sum ^ sum >> 31
  }
}

extension Grants.State {
  /// Gives a grant another mark, and its holder another version by that.
  mutating func markAnew(_ id: Int64) {
    guard let placed = entries[id] else { return }
    let mark = UInt64.random(in: .min ... .max)
    versions[placed.holder, default: 0] &+= mark &- placed.mark
    entries[id]?.mark = mark
  }
}

/// Numbers in ascending order.
struct SortedNumbers: Sendable {
  private var numbers: [Int64] = []

  var isEmpty: Bool { numbers.isEmpty }

  /// Those that are larger than a number.
  func after(_ number: Int64) -> ArraySlice<Int64> { numbers[firstIndex { $0 > number }...] }

  mutating func insert(_ number: Int64) {
    let index = firstIndex { $0 >= number }
    guard index == numbers.endIndex || numbers[index] != number else { return }
    numbers.insert(number, at: index)
  }

  mutating func remove(_ number: Int64) {
    let index = firstIndex { $0 >= number }
    guard index < numbers.endIndex, numbers[index] == number else { return }
    numbers.remove(at: index)
  }

  /// By bisection: what is true of one is true of all after it.
  private func firstIndex(where isTrue: (Int64) -> Bool) -> Int {
    var (low, high) = (0, numbers.count)
    while low < high {
      let middle = low + (high - low) / 2
      if isTrue(numbers[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
