// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Synchronization

extension AccountNames {
  /// The accounts of this machine, each looked up once: a listing names the same few over and over.
  static func cached() -> AccountNames {
    let users = Cache<UInt32, String> { Account.numbered($0)?.name }
    let groups = Cache<UInt32, String> { AccountGroup.numbered($0)?.name }
    let uids = Cache<String, UInt32> { Account.named($0)?.uid }
    let gids = Cache<String, UInt32> { AccountGroup.named($0)?.gid }
    return AccountNames(
      userName: { users[$0] }, groupName: { groups[$0] }, uid: { uids[$0] }, gid: { gids[$0] })
  }
}

/// Remembers answers, those that there is none among them.
private final class Cache<Question: Hashable & Sendable, Answer: Sendable>: Sendable {
  private let answers = Mutex<[Question: Answer?]>([:])
  private let find: @Sendable (Question) -> Answer?

  init(_ find: @escaping @Sendable (Question) -> Answer?) { self.find = find }

  subscript(question: Question) -> Answer? {
    if let known = answers.withLock({ $0[question] }) { return known }
    let answer = find(question)
    answers.withLock { $0[question] = .some(answer) }
    return answer
  }
}
