// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

@Suite struct DecideTests {
  private func object(
    mode: UInt32, uid: UInt32 = 1, gid: UInt32 = 10, directory: Bool = false, zone: Zone = .user
  ) -> Object {
    Object(uid: uid, gid: gid, mode: mode, kind: directory ? .directory : .file, zone: zone)
  }

  private enum Class: Int, CaseIterable { case owner = 6, group = 3, other = 0 }

  private func credentials(_ kind: Class) -> Credentials {
    switch kind {
    case .owner: Credentials(uid: 1, gid: 99)
    case .group: Credentials(uid: 2, gid: 10)
    case .other: Credentials(uid: 3, gid: 99)
    }
  }

  /// All modes, all classes, all three rights, against the sentence of the manual.
  @Test func modeBitsDecideAsPOSIXSays() {
    for mode in UInt32(0)...0o777 {
      for kind in Class.allCases {
        for (right, bit) in [(Rights.read, 4), (.write, 2), (.execute, 1)] as [(Rights, UInt32)] {
          let allowed = mode >> UInt32(kind.rawValue) & bit != 0
          let decision = decide(right, on: object(mode: mode), by: credentials(kind)) { _ in .notMember }
          #expect(decision == (allowed ? .allow : .deny(.mode)))
        }
      }
    }
  }

  @Test func supplementaryGroupCounts() {
    let someone = Credentials(uid: 3, gid: 99)
    #expect(decide(.read, on: object(mode: 0o040), by: someone) { $0 == 10 ? .member : .notMember } == .allow)
    // A member whose class has less than the others gets less.
    #expect(
      decide(.read, on: object(mode: 0o004), by: someone) { $0 == 10 ? .member : .notMember } == .deny(.mode))
  }

  @Test func groupsAreAskedForOnlyWhereTheyMatter() {
    for mode in UInt32(0)...0o777 {
      var asked = 0
      _ = decide([.read, .write], on: object(mode: mode), by: Credentials(uid: 3, gid: 99)) { _ in
        asked += 1
        return .member
      }
      let differs = (mode >> 3 & 0o6 == 0o6) != (mode & 0o6 == 0o6)
      #expect(asked == (differs ? 1 : 0))
    }
  }

  @Test func sandboxedAppsStartInViewsAlone() {
    for (inView, isSandboxed, decision) in [
      (false, true, Decision.deny(.sandbox)), (true, true, .allow), (false, false, .allow),
      (true, false, .allow),
    ] { #expect(decideStart(inView: inView, isSandboxed: isSandboxed) == decision) }
  }

  @Test(arguments: [Zone.top, .system])
  func readOnlyRegionsHoldForRoot(zone: Zone) {
    let root = Credentials(uid: 0, gid: 0)
    let sealed = object(mode: 0o777, directory: true, zone: zone)
    for right in [
      Rights.write, .delete, .append, .deleteChild, .writeAttributes, .writeExtended, .writeSecurity,
      .takeOwnership,
    ] {
      #expect(decide(right, on: sealed, by: root) { _ in .member } == .deny(.readOnly))
    }
    for right in [Rights.read, .execute, .readAttributes, .readExtended, .readSecurity] {
      #expect(decide(right, on: sealed, by: root) { _ in .member } == .allow)
    }
  }

  @Test(arguments: [
    Zone.applications, .library, .localStandard, .utilities, .networkStandard, .users, .sharedStandard,
  ])
  func skeletonStays(zone: Zone) {
    let standard = object(mode: 0o777, uid: 0, directory: true, zone: zone)
    let root = Credentials(uid: 0, gid: 0)
    #expect(decide(.delete, on: standard, by: root) { _ in .member } == .deny(.place))
    #expect(decide([.addFile, .deleteChild], on: standard, by: root) { _ in .member } == .allow)
  }

  @Test func rootRunsOnlyWhatSomeoneMayRun() {
    let root = Credentials(uid: 0, gid: 0)
    #expect(decide(.execute, on: object(mode: 0o666), by: root) { _ in .member } == .deny(.mode))
    #expect(decide(.execute, on: object(mode: 0o001), by: root) { _ in .member } == .allow)
    #expect(decide(.search, on: object(mode: 0, directory: true), by: root) { _ in .member } == .allow)
    #expect(decide([.read, .write], on: object(mode: 0), by: root) { _ in .member } == .allow)
  }

  @Test func onlyTheOwnerChangesTheMode() {
    #expect(
      decide(.writeSecurity, on: object(mode: 0o777), by: credentials(.other)) { _ in .member }
        == .deny(.ownership))
    #expect(
      decide(.writeSecurity, on: object(mode: 0), by: credentials(.owner)) { _ in .notMember } == .allow)
  }

  @Test(arguments: [Class.owner, .group, .other])
  private func nobodyGivesAwayByMode(kind: Class) {
    #expect(
      decide(.takeOwnership, on: object(mode: 0o777), by: credentials(kind)) { _ in .member }
        == .deny(.ownership)
    )
  }

  @Test func ownerAlwaysSetsTimesOthersIfTheyMayWrite() {
    #expect(
      decide(.writeAttributes, on: object(mode: 0), by: credentials(.owner)) { _ in .notMember } == .allow)
    #expect(
      decide(.writeAttributes, on: object(mode: 0o002), by: credentials(.other)) { _ in .notMember } == .allow
    )
    #expect(
      decide(.writeAttributes, on: object(mode: 0o775), by: credentials(.other)) { _ in .notMember }
        == .deny(.mode))
  }

  @Test(
    arguments: [
      (0o6755, 0o0755, 0o0755), (0o2755, 0o0755, 0o0755), (0o2745, 0o2745, 0o0745), (0o6644, 0o2644, 0o0644),
      (0o4644, 0o0644, 0o0644), (0o1777, 0o1777, 0o1777), (0o0755, 0o0755, 0o0755),
    ] as [(UInt32, UInt32, UInt32)])
  func setIDGoesAsOnLinux(mode: UInt32, membersLeave: UInt32, strangersLeave: UInt32) {
    #expect(modeWithoutSetID(mode) { true } == membersLeave)
    #expect(modeWithoutSetID(mode) { false } == strangersLeave)
  }

  @Test func onlyDirectoriesOpenToAllAreCached() {
    for mode in UInt32(0)...0o777 {
      let all = mode & 0o100 != 0 && mode & 0o010 != 0 && mode & 0o001 != 0
      #expect(isSearchableByAll(object(mode: mode, directory: true)) == all)
    }
  }
}
