// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Store
internal import TestSupport
internal import Testing

@Suite struct IntentNumberTests {
  @Test func whoLeavesLateTakesNobodyElsesPlace() throws {
    let fixture = try AppFixture()
    try fixture.bundle()
    let app = try fixture.install()
    let first = try fixture.registry.begin(.uninstall(app, keepingData: false))
    try fixture.registry.finish(first)
    let second = try fixture.registry.begin(.install(app))
    #expect(second.number == first.number)
    fixture.registry.leave(first)
    // Else whoever ends what was stopped would end this one.
    #expect(try fixture.registry.intents().map(\.isLive) == [true])
    fixture.registry.leave(second)
    #expect(try fixture.registry.intents().map(\.isLive) == [false])
  }
}
