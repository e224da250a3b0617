// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Store
internal import TestSupport
internal import Testing

@Suite struct IntentNumberTests {
  @Test func whoLeavesLateTakesNobodyElsesPlace() throws {
    let house = try AppHouse()
    try house.bundle()
    let app = try house.install()
    let first = try house.registry.begin(.uninstall(app, keepingData: false))
    try house.registry.finish(first)
    let second = try house.registry.begin(.install(app))
    #expect(second.number == first.number)
    house.registry.leave(first)
    // Else whoever ends what was stopped would end this one.
    #expect(try house.registry.intents().map(\.isLive) == [true])
    house.registry.leave(second)
    #expect(try house.registry.intents().map(\.isLive) == [false])
  }
}
