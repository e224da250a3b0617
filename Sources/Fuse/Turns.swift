// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What waits to be done: users take turns, and of one user their connections do.
///
/// Of one user at most so many pieces of work are under way at once.
struct Turns<Work> {
  private struct User {
    var waiting: [UInt64: Line<Work>] = [:]
    /// The connections that have work waiting, the next one first.
    var connections = Line<UInt64>()
    var underWay = 0
    var count = 0
  }
  private var users: [UInt32: User] = [:]
  /// The users who have work waiting, the next one first.
  private var order = Line<UInt32>()
  private(set) var waiting = 0
  let share: Int

  init(share: Int) { self.share = share }

  mutating func add(_ work: Work, _ user: UInt32, _ connection: UInt64) {
    var known = users.removeValue(forKey: user) ?? User()
    if known.connections.isEmpty { order.append(user) }
    if known.waiting[connection] == nil { known.connections.append(connection) }
    known.waiting[connection, default: Line()].append(work)
    known.count += 1
    users[user] = known
    waiting += 1
  }

  /// Whether a user has work that waits or is under way.
  func has(_ user: UInt32) -> Bool { users[user] != nil }

  /// How much work of a user waits.
  func waiting(of user: UInt32) -> Int { users[user]?.count ?? 0 }

  /// Whether ``next()`` would give something.
  var hasNext: Bool {
    waiting > 0 && users.values.contains { !$0.connections.isEmpty && $0.underWay < share }
  }

  /// The next piece of work; nil if there is none, or all who have some have their share under way.
  mutating func next() -> (work: Work, user: UInt32)? {
    for _ in 0..<order.count {
      guard let user = order.removeFirst() else { return nil }
      guard var known = users.removeValue(forKey: user) else { continue }
      defer {
        if !known.connections.isEmpty { order.append(user) }
        users[user] = known
      }
      guard known.underWay < share, let connection = known.connections.removeFirst(),
        var line = known.waiting.removeValue(forKey: connection), let work = line.removeFirst()
      else { continue }
      if !line.isEmpty {
        known.waiting[connection] = line
        known.connections.append(connection)
      }
      known.underWay += 1
      known.count -= 1
      waiting -= 1
      return (work, user)
    }
    return nil
  }

  /// A piece of work that ``next()`` gave is done.
  mutating func done(_ user: UInt32) {
    guard var known = users.removeValue(forKey: user) else { return }
    known.underWay -= 1
    if known.underWay > 0 || !known.connections.isEmpty { users[user] = known }
  }
}

/// A queue whose front is taken in constant time.
private struct Line<Item> {
  private var items: [Item?] = []
  private var head = 0

  var count: Int { items.count - head }
  var isEmpty: Bool { head == items.count }

  mutating func append(_ item: Item) { items.append(item) }

  mutating func removeFirst() -> Item? {
    guard head < items.count else { return nil }
    let first = items[head]
    items[head] = nil
    head += 1
    if head > 32, head > items.count / 2 {
      items.removeFirst(head)
      head = 0
    }
    return first
  }
}
