// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import Synchronization

/// The user ids that accounts have been given besides their own, to be mapped into user namespaces.
///
/// An account gets tens of thousands of them without asking, and can act as each. For what is shared among
/// users they are all one: otherwise a single person has the shares of tens of thousands. A number that is an
/// account by itself is not one of them, whatever the ranges say.
package final class SubordinateUsers: Sendable {
  /// Those of `subuid(5)`; what a directory service gives out besides is not known.
  package static let ofThisMachine = SubordinateUsers(path: "/etc/subuid")

  private struct Range {
    let first: UInt32
    let last: UInt32
    let account: UInt32
  }
  private struct Known {
    var stamp: FileStamp?
    var ranges: [Range] = []
  }
  private let path: String
  private let accounts: LocalAccounts
  /// Which numbers in the ranges are accounts of their own.
  package let numbers: AccountNumbers
  private let known = Mutex(Known())
  /// Whoever is below it is in no range, and need not wait for the lock.
  private let lowest = Atomic<UInt32>(.max)
  /// When the file was last looked at.
  private let looked = Atomic<UInt32>(0)

  private static let limit = 64 << 20

  /// `numbers` are the accounts that count by themselves; without them, those that the machine knows.
  package init(path: String, accounts: LocalAccounts = .users, numbers: AccountNumbers? = nil) {
    self.path = path
    self.accounts = accounts
    self.numbers = numbers ?? AccountNumbers(local: accounts)
    refresh()
  }

  /// Whose an id is: the account to which it was given, or itself.
  package func account(of user: UInt32) -> UInt32 {
    let holder = holder(of: user)
    return holder == user || numbers.contains(user) ? user : holder
  }

  /// The account that has been given an id besides its own; nil if the id is an account by itself, or is
  /// nobody's.
  ///
  /// It may wait for a directory service, the first time that an id is asked for.
  package func giver(of user: UInt32) -> UInt32? {
    let holder = holder(of: user)
    return holder == user || numbers.find(user) ? nil : holder
  }

  /// The account that has been given an id, even if that is an account as well; or itself.
  package func holder(of user: UInt32) -> UInt32 {
    // Root is nobody's, and asks more often than anybody.
    if user == 0 { return 0 }
    let now = coarseSeconds()
    let last = looked.load(ordering: .relaxed)
    if last != now, looked.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged {
      refresh()
    }
    guard user >= lowest.load(ordering: .relaxed) else { return user }
    return known.withLock { known in
      var (low, high) = (0, known.ranges.count)
      while low < high {
        let middle = (low + high) / 2
        if known.ranges[middle].first <= user { low = middle + 1 } else { high = middle }
      }
      guard low > 0, user <= known.ranges[low - 1].last else { return user }
      return known.ranges[low - 1].account
    }
  }

  /// Reads the file again if it has changed.
  private func refresh() {
    guard let file = try? FD.cwd.openFollowing(path, O_RDONLY | O_NONBLOCK),
      let status = try? file.fd.status(), status.isRegular
    else { return replace(Known()) }
    let stamp = FileStamp(status)
    if known.withLock({ $0.stamp == stamp }) { return }
    guard let bytes = try? file.fd.readToEnd(limit: Self.limit) else { return }
    // What has only just been changed may change again without another time.
    replace(Known(stamp: stamp.isSettled ? stamp : nil, ranges: ranges(bytes)))
  }

  private func replace(_ new: Known) {
    known.withLock { $0 = new }
    lowest.store(new.ranges.first?.first ?? .max, ordering: .relaxed)
  }

  /// Lines of an account, by name or number, the first id and how many there are.
  private func ranges(_ bytes: [UInt8]) -> [Range] {
    var ranges: [Range] = []
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      let fields = line.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        .map { String(decoding: $0, as: UTF8.self) }
      guard fields.count == 3, let first = UInt32(fields[1]), let count = UInt32(fields[2]), count > 0
      else { continue }
      let (last, isTooFar) = first.addingReportingOverflow(count - 1)
      var account = accounts.id(of: fields[0]) ?? UInt32(fields[0]) ?? first
      // Containers that root runs have nothing of what is root's.
      if account == 0 { account = first }
      ranges.append(Range(first: first, last: isTooFar ? .max : last, account: account))
    }
    return ranges.inOrder { $0.first < $1.first }
  }
}
