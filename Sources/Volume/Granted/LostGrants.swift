// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store

/// A grant of a file that still exists, whose name nobody knows.
struct LostGrant {
  let record: GrantRecord
  let number: ObjectNumber
  /// Where it was found.
  var path: [[UInt8]]?
}

/// What a search may still do.
///
/// It is needed only after a machine stopped at a bad moment, and everybody waits for it.
struct SearchAllowance {
  /// How many names it may look at, those on its way included.
  var names = 200_000
  /// When it ends, by the monotonic clock.
  var end = monotonicNanoseconds() + 2_000_000_000
  var isUsedUp: Bool { names <= 0 || millisecondsLeft(until: end) == 0 }
}

extension Volume {
  /// Goes through files for those that were lost: each user's home, and what all share.
  ///
  /// Every user has their part of what the search may do: who has many files, or many such grants, leaves
  /// room for others.
  @inline(never)
  func search(for lost: inout [LostGrant], _ allowance: SearchAllowance = SearchAllowance()) {
    guard !lost.isEmpty, let directory = try? tree.openDirectory(at: [Self.users]),
      let entries = try? directory.fd.entries(atMost: allowance.names)
    else { return }
    let homes = entries.compactMap { entry -> (name: [UInt8], owner: UInt32)? in
      guard let status = try? directory.fd.status(of: entry.name), status.isDirectory else { return nil }
      return (entry.name, status.st_uid)
    }
    let users = Set(lost.map(\.record.user)).inOrder(by: <)
    var rest = allowance
    for (index, user) in users.enumerated() {
      var part = rest
      part.names = rest.names / (users.count - index)
      rest.names -= part.names
      for home in homes where home.owner == user || home.name == Array("Shared".utf8) {
        search([Self.users, home.name], for: &lost, of: user, &part)
      }
      rest.names += max(part.names, 0)
    }
  }

  private static var users: [UInt8] { Array("Users".utf8) }

  /// Goes through one directory and all that is in it.
  @inline(never)
  private func search(
    _ directory: [[UInt8]], for lost: inout [LostGrant], of user: UInt32, _ allowance: inout SearchAllowance
  ) {
    func isWanted(_ grant: LostGrant) -> Bool { grant.record.user == user && grant.path == nil }
    var wanted = Set(lost.filter(isWanted).map(\.number))
    var waiting = [directory]
    while let names = waiting.popLast(), !wanted.isEmpty, !allowance.isUsedUp {
      guard let directory = try? tree.openDirectory(at: names) else { continue }
      let entries: [(name: [UInt8], type: UInt8)]
      do throws(Errno) { entries = try directory.fd.entries(atMost: allowance.names) } catch {
        // It has more than that, which were read.
        if error == .EOVERFLOW { allowance.names = 0 }
        continue
      }
      for entry in entries {
        allowance.names -= 1
        guard !allowance.isUsedUp else { return }
        let path = names + [entry.name]
        guard GrantPath.isPath(path), let status = try? directory.fd.status(of: entry.name) else { continue }
        if status.isDirectory {
          allowance.names -= path.count
          waiting.append(path)
        }
        guard let number = wanted.remove(ObjectNumber(status)) else { continue }
        for index in lost.indices where lost[index].number == number && isWanted(lost[index]) {
          lost[index].path = path
        }
      }
    }
  }
}
