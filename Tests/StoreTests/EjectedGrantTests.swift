// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// What was granted in homes that were ejected: other homes may have their names.
@Suite struct EjectedGrantTests {
  private let fixture: TestFixture
  private let app: InstalledApp
  private var registry: Registry { fixture.registry }

  /// Two homes elsewhere, in one directory, and two other users who have granted something in each.
  init() throws {
    fixture = try TestFixture()
    app = try InstalledApp.example()
    try registry.add(app)
    for (name, user) in [("eva", 501), ("ben", 502)] as [(String, UInt32)] {
      try bring(name, of: user)
      for other in [501, 502, 601, 602] as [UInt32] { try grant("Users/\(name)/Public/f", other) }
    }
    try grant("Users/evamaria/x", 601)
    try grant("Users/eva", 602)
  }

  private func bring(_ name: String, of user: UInt32, from path: String = "/homes") throws {
    let volume = try registry.add(
      VolumeRecord(
        in: .users, name: Array(name.utf8), path: Array(path.utf8),
        identity: ObjectIdentity(inode: 1, handle: [], created: 1), owner: nil, isReadOnly: false, added: 1))
    try registry.note(owner: user, ofHome: volume.id)
  }

  private func eject(_ name: String, droppingGrants: Bool = false) throws {
    let volume = try #require(registry.volumes().first { $0.name.elementsEqual(name.utf8) })
    try registry.ejectHome(volume, droppingGrants: droppingGrants)
  }

  private func grant(_ path: String, _ user: UInt32) throws {
    _ = try registry.add(
      GrantRecord(
        identifier: app.identifier, user: user, team: app.signer, path: GrantPath.names(Array(path.utf8)),
        isWritable: false, isDirectory: true, identity: ObjectIdentity(inode: 1, handle: [], created: 1),
        granted: 1))
  }

  /// Who has granted something that counts in a home.
  private func users(_ home: String) throws -> [UInt32] {
    let grants = try registry.grants()
    #expect(try Set(grants.map(\.id)) == registry.grantNumbers())
    return grants.filter { $0.path.dropFirst().first.map { $0.elementsEqual(home.utf8) } == true }.map(\.user)
      .sorted()
  }

  private func waiting() throws -> [UInt32] {
    try [501, 502, 601, 602].flatMap { try registry.grantsInEjectedHomes(of: $0) }.map(\.user)
  }

  /// The next home of the name gives nobody's app anything that was granted in the first one.
  @Test func whatOthersGrantedWaitsForTheHome() throws {
    try eject("eva")
    #expect(try users("eva") == [501] && waiting() == [502, 601, 602, 602])
    #expect(try users("ben") == [501, 502, 601, 602] && users("evamaria") == [601])
    // Another home of the name, in the store; what is granted there is that one's, and goes with it.
    try grant("Users/eva/Public/f", 601)
    #expect(try users("eva") == [501, 601] && registry.takeUpGrants() == [])
    try registry.forget(home: "eva", of: 501, whereRemovedAre: { _ in false })
    #expect(try users("eva") == [501] && waiting().count == 4)
    // Or elsewhere.
    try bring("eva", of: 503, from: "/other")
    #expect(try registry.takeUpGrants() == [])
    try grant("Users/eva/Public/f", 602)
    let other = try #require(registry.volumes().first { $0.path.count == 6 && $0.name == Array("eva".utf8) })
    try registry.forgetHome("eva", on: other, .unknown)
    #expect(try users("eva") == [501] && waiting().count == 4)
    try registry.removeVolume(other.id)
    // One of the same directory is not that home.
    try eject("ben")
    try bring("ben", of: 502)
    #expect(try registry.takeUpGrants().count == 3 && users("ben") == [501, 502, 601, 602])
    #expect(try waiting().count == 4)
    try bring("eva", of: 501)
    #expect(try registry.takeUpGrants().count == 4 && waiting() == [])
    #expect(try users("eva") == [501, 502, 601, 602, 602])
  }

  /// What nobody knows is not forgotten with what has gone, but if it was taken back.
  @Test func whatWaitsIsTakenBackAlone() throws {
    try eject("eva")
    let numbers = try registry.grantsInEjectedHomes(of: 602).map(\.id)
    try #require(numbers.count == 2)
    try registry.removeGrants(numbers)
    #expect(try registry.grantsInEjectedHomes(of: 602).map(\.id) == numbers)
    try registry.removeGrants(numbers, takenBack: [numbers[0]])
    #expect(try registry.grantsInEjectedHomes(of: 602).map(\.id) == [numbers[1]])
    // By force, nothing stays granted.
    try eject("ben", droppingGrants: true)
    #expect(try users("ben") == [] && waiting() == [502, 601, 602])
  }

  /// A home that will not come back.
  @Test func whatWaitsGoesWithTheHome() throws {
    try eject("eva")
    try eject("ben")
    #expect(try waiting().count == 7)
    try fixture.store.forgetEjectedHome("eva", in: registry)
    #expect(try waiting() == [501, 601, 602] && users("evamaria") == [601])
  }

  /// Two homes of one name, ejected from different places.
  @Test func oneOfSeveralHomesIsForgotten() throws {
    try eject("eva")
    try bring("eva", of: 503, from: "/other")
    try grant("Users/eva/Public/g", 602)
    try eject("eva")
    #expect(try waiting() == [501, 502, 601, 602, 602, 602])
    let failure = StoreError.severalEjectedHomes(name: "eva", sources: ["/homes", "/other"])
    for source in [nil, "/elsewhere"] {
      #expect(throws: failure) {
        try fixture.store.forgetEjectedHome("eva", from: source, in: registry)
      }
    }
    try fixture.store.forgetEjectedHome("eva", from: "/other", in: registry)
    #expect(try waiting() == [502, 601, 602, 602])
    #expect(try registry.ejectedHomes().map(\.source) == [Array("/homes".utf8)])
    try fixture.store.forgetEjectedHome("eva", in: registry)
    #expect(try waiting() == [] && registry.ejectedHomes().isEmpty)
  }

  /// Earlier versions had what counts, and what waits, in one.
  @Test func whatEarlierVersionsNotedWaitsAsWell() throws {
    try eject("eva")
    let step = try #require(RegistrySchema.steps.first { $0.name == "grants in ejected homes" })
    try registry.change { (database) throws(StoreError) in
      try database.run("UPDATE grants SET ejected = NULL")
      for statement in step.statements where statement.description.contains("UPDATE grants") {
        try database.run(statement)
      }
    }
    #expect(try users("eva") == [501] && waiting() == [502, 601, 602, 602])
  }
}
