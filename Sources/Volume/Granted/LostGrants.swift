// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store

/// A grant whose object is not where it was.
struct LostGrant {
  let record: GrantRecord
  /// The number of a file that is still there, and of which the kernel knows no name.
  var number: ObjectNumber?
  /// Where it was found.
  var path: [[UInt8]]?

  fileprivate func isWanted(by user: UInt32) -> Bool {
    number != nil && path == nil && record.user == user
  }
}

/// What a search may still do.
///
/// It is needed only after a machine stopped at a bad moment, and what its users start waits for it.
struct SearchAllowance {
  /// How many names it may look at, those on its way included.
  var names = 200_000
  /// When it ends, by the monotonic clock.
  var end = monotonicNanoseconds() &+ 2_000_000_000
  var isUsedUp: Bool { names <= 0 || millisecondsLeft(until: end) == 0 }

  /// What there is of it for one of so many.
  func part(among count: Int) -> SearchAllowance {
    var part = self
    part.names = names / count
    part.end = monotonicNanoseconds() &+ UInt64(millisecondsLeft(until: end) / count) &* 1_000_000
    return part
  }
}

extension Volume {
  /// Finds what was lost: the kernel is asked, and then each user's home and what all share are searched.
  ///
  /// Every user has their part of the names and of the time: who has many files, or many such grants, leaves
  /// room for others.
  @inline(never)
  func find(_ lost: inout [LostGrant], _ allowance: SearchAllowance = SearchAllowance()) {
    if lost.isEmpty { return }
    let homes = homes(atMost: allowance.names)
    let users = Set(lost.map(\.record.user)).inOrder(by: <)
    var rest = allowance
    for (index, user) in users.enumerated() {
      var part = rest.part(among: users.count - index)
      rest.names -= part.names
      for index in lost.indices where lost[index].record.user == user && !part.isUsedUp {
        askKernel(for: &lost[index])
      }
      for home in homes where home.owner == user || home.name == Array("Shared".utf8) {
        search([Self.users, home.name], for: &lost, of: user, &part)
      }
      rest.names += max(part.names, 0)
    }
  }

  private static var users: [UInt8] { Array("Users".utf8) }

  private func homes(atMost limit: Int) -> [(name: [UInt8], owner: UInt32)] {
    guard let directory = try? tree.openDirectory(at: [Self.users]),
      let entries = try? directory.fd.entries(atMost: limit)
    else { return [] }
    return entries.compactMap { entry in
      guard let status = try? directory.fd.status(of: entry.name), status.isDirectory else { return nil }
      return (entry.name, status.st_uid)
    }
  }

  /// Asks for an object by its handle, which leads to it whatever its name is.
  private func askKernel(for grant: inout LostGrant) {
    let identity = grant.record.identity
    guard settings.fileHandles, let handle = FileHandle(encoded: identity.handle),
      let object = try? tree.open(handle), let status = try? object.fd.status(), status.st_nlink > 0,
      ObjectIdentity(status, of: object.fd) == identity
    else { return }
    let names = kernelPath(of: object.fd) ?? []
    if names.isEmpty {
      // The kernel knows a file's name only if it was looked up recently; else it says "/".
      if !status.isDirectory { grant.number = ObjectNumber(status) }
    } else if GrantPath.isPath(names) {
      // What is too deep for a grant is not looked for any further.
      grant.path = names
    }
  }

  /// Goes through one directory and all that is in it.
  @inline(never)
  private func search(
    _ directory: [[UInt8]], for lost: inout [LostGrant], of user: UInt32, _ allowance: inout SearchAllowance
  ) {
    var wanted = Set(lost.filter { $0.isWanted(by: user) }.compactMap(\.number))
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
        for index in lost.indices where lost[index].number == number && lost[index].isWanted(by: user) {
          lost[index].path = path
        }
      }
    }
  }
}
