// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// Paths that are one text for Swift, and two for everybody else.
@Suite struct LookAlikeRegistryTests {
  private static let homes = ["Caf\u{e9}", "Cafe\u{301}"]

  private let fixture: TestFixture
  private let apps: [InstalledApp]

  init() throws {
    fixture = try TestFixture()
    apps = try zip(Self.homes, UInt32(501)...).map { home, user in
      var app = try InstalledApp.example(user: user)
      app.path = "Users/\(home)/Applications/Editor.app"
      app.seal = [UInt8(truncatingIfNeeded: user)]
      return app
    }
  }

  @Test func eachBundleHasItsSeal() throws {
    for app in apps { try fixture.registry.add(app) }
    let bundles = try fixture.registry.bundles()
    try #require(bundles.count == 2)
    for app in apps {
      let own = try #require(bundles.first { $0.path.hasSameBytes(as: app.path) })
      #expect(own.seals == [app.seal])
    }
  }

  /// Bundles that are about to be there count too.
  @Test func oneChangeKeepsNoNeighbourFromAnother() throws {
    let noted = try apps.map { try fixture.registry.begin(.install($0)) }
    #expect(try fixture.registry.bundles().count == 2)
    // Names that differ by case alone are one.
    var other = try InstalledApp.example("com.example.other", user: 503)
    other.path = apps[0].path.uppercased()
    #expect(
      storeError { _ = try fixture.registry.begin(.install(other)) }
        == .appBusy(identifier: apps[0].identifier.text))
    for one in noted { try fixture.registry.finish(one) }
    #expect(try fixture.registry.bundles().count == 2)
  }

  /// What lies in one home is none of the containers of the other one.
  @Test func checkNamesWhatIsNotRecorded() throws {
    let containers = Self.homes.map { "Users/\($0)/Library/Containers/com.example.editor" }
    for path in containers {
      let all = "\(fixture.path)/tree/\(path)"
      try FileManager.default.createDirectory(atPath: all, withIntermediateDirectories: true)
    }
    _ = try fixture.registry.note(
      ContainerRecord(
        uuid: "A", kind: .data, identifier: #require(AppIdentifier("com.example.editor")), user: 501,
        path: containers[0], team: Team("TEAM", root: [1])))
    let found = try fixture.findings().filter {
      $0.problem.contains("is not a container that insula created")
    }
    #expect(found.map { Array($0.path.utf8) } == [Array("\(fixture.path)/tree/\(containers[1])".utf8)])
  }

  @Test func computersAreTwoPlaces() {
    let places = Self.homes.map { VolumeRecord.Place.server($0) }
    #expect(places[0] != places[1] && Set(places).count == 2)
  }
}
