// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Synchronization

extension AccountNames {
  /// Other accounts' names, each looked up once: a listing names the same few over and over.
  func cached() -> AccountNames {
    let users = Cache(userName)
    let groups = Cache(groupName)
    let uids = Cache(uid)
    let gids = Cache(gid)
    return AccountNames(
      userName: { users[$0] }, groupName: { groups[$0] }, uid: { uids[$0] }, gid: { gids[$0] },
      isOwnDomain: isOwnDomain)
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
