// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

@Suite struct ModeACLTests {
  private static let least: Rights = [.readAttributes, .readSecurity]
  private static let reading: Rights = [.read, .readExtended, .readAttributes, .readSecurity]
  private static let writing: Rights = [.write, .append, .writeExtended, .writeAttributes]
  private static let owning: Rights = [.writeAttributes, .writeSecurity]

  private func permit(_ principal: Principal, _ rights: Rights...) -> AccessControlEntry {
    AccessControlEntry(.permit, principal, rights.reduce([]) { $0.union($1) })
  }

  private func deny(_ principal: Principal, _ rights: Rights) -> AccessControlEntry {
    AccessControlEntry(.deny, principal, rights)
  }

  @Test func commonModesAreThreeEntries() {
    #expect(
      AccessControlList(mode: 0o644, isDirectory: false).entries == [
        permit(.owner, Self.reading, Self.writing, Self.owning), permit(.owningGroup, Self.reading),
        permit(.everyone, Self.reading),
      ])
    #expect(
      AccessControlList(mode: 0o750, isDirectory: true).entries == [
        permit(.owner, Self.reading, Self.writing, Self.owning, [.search, .deleteChild]),
        permit(.owningGroup, Self.reading, .search), permit(.everyone, Self.least),
      ])
    #expect(
      AccessControlList(mode: 0o000, isDirectory: false).entries == [
        permit(.owner, Self.least, Self.owning), permit(.owningGroup, Self.least),
        permit(.everyone, Self.least),
      ])
  }

  @Test func whoHasLessThanThoseBehindIsDeniedIt() {
    #expect(
      AccessControlList(mode: 0o604, isDirectory: false).entries == [
        permit(.owner, Self.reading, Self.writing, Self.owning),
        deny(.owningGroup, [.read, .readExtended]), permit(.owningGroup, Self.least),
        permit(.everyone, Self.reading),
      ])
    #expect(
      AccessControlList(mode: 0o077, isDirectory: true).entries == [
        deny(.owner, [.list, .readExtended, .write, .append, .writeExtended, .search, .deleteChild]),
        permit(.owner, Self.least, Self.owning),
        permit(.owningGroup, Self.reading, Self.writing, [.search, .deleteChild]),
        permit(.everyone, Self.reading, Self.writing, [.search, .deleteChild]),
      ])
  }

  @Test func stickyDirectoriesLeaveRemovalToTheMode() {
    #expect(
      AccessControlList(mode: 0o1777, isDirectory: true).entries == [
        permit(.owner, Self.reading, Self.writing, Self.owning, [.search, .deleteChild]),
        permit(.owningGroup, Self.reading, Self.writing, .search),
        permit(.everyone, Self.reading, Self.writing, .search),
      ])
  }

  // MARK: For every mode

  private struct Person {
    let owns: Bool
    let isInGroup: Bool

    static let all = [
      Person(owns: true, isInGroup: false), Person(owns: true, isInGroup: true),
      Person(owns: false, isInGroup: true), Person(owns: false, isInGroup: false),
    ]

    func isMeant(by entry: AccessControlEntry) -> Bool {
      switch entry.principal {
      case .owner: owns
      case .owningGroup: isInGroup
      default: true
      }
    }

    /// What the mode says of one right; nil where it depends on what is to be removed.
    func may(_ right: Rights, mode: UInt32, isDirectory: Bool) -> Bool? {
      let bits = owns ? mode >> 6 : isInGroup ? mode >> 3 : mode
      switch right {
      case .readAttributes, .readSecurity: return true
      case .read, .readExtended: return bits & 4 != 0
      case .write, .append, .writeExtended: return bits & 2 != 0
      case .writeAttributes: return owns || bits & 2 != 0
      case .execute: return bits & 1 != 0
      case .writeSecurity: return owns
      case .deleteChild:
        if mode & 0o1000 != 0, !owns, bits & 2 != 0 { return nil }
        return bits & 2 != 0
      default: return false
      }
    }
  }

  /// The rule of RFC 7530, section 6.2.1: each right is settled by the first entry that speaks of it, and is
  /// denied if none does.
  private func isAllowedByNFS4(_ rights: Rights, _ acl: AccessControlList, _ person: Person) -> Bool {
    var open = rights
    for entry in acl.entries where person.isMeant(by: entry) {
      if entry.kind == .permit {
        open.subtract(entry.rights)
      } else if !open.isDisjoint(with: entry.rights) {
        return false
      }
    }
    return open.isEmpty
  }

  /// A Mac's rule: a denial counts against all that is asked; nil if the mode is left to decide.
  private func isAllowedByMac(_ rights: Rights, _ acl: AccessControlList, _ person: Person) -> Bool? {
    var open = rights
    for entry in acl.entries where person.isMeant(by: entry) {
      if entry.kind == .permit {
        open.subtract(entry.rights)
      } else if !rights.isDisjoint(with: entry.rights) {
        return false
      }
      if open.isEmpty { return true }
    }
    return nil
  }

  /// Each right and each two, of everyone, on files and directories: the ACL says what the mode says, by
  /// either model's rules.
  @Test func everyModeIsSaidExactly() {
    let single = (1..<14).map { Rights(rawValue: 1 << $0) }
    let asked = single.flatMap { first in single.filter { $0.rawValue >= first.rawValue }.map { [first, $0] }
    }
    for isDirectory in [false, true] {
      for mode in UInt32(0)...(isDirectory ? 0o1777 : 0o777) {
        let acl = AccessControlList(mode: mode, isDirectory: isDirectory)
        for person in Person.all {
          for pair in asked where isDirectory || !pair.contains(.deleteChild) {
            let answers = pair.map { person.may($0, mode: mode, isDirectory: isDirectory) }
            let rights = pair[0].union(pair[1])
            let allowed = answers.allSatisfy { $0 == true }
            let isRight =
              switch isAllowedByMac(rights, acl, person) {
              case true: allowed
              case false: answers.contains(false)
              case nil: true
              }
            if !isRight || isAllowedByNFS4(rights, acl, person) != allowed {
              Issue.record("mode \(String(mode, radix: 8)), directory: \(isDirectory), \(person), \(pair)")
              return
            }
          }
        }
      }
    }
  }
}
