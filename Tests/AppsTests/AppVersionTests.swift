// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Testing

@Suite struct AppVersionTests {
  @Test func laterVersionsAreLater() {
    let ordered = [
      "", "0.0.1", "0.9", "1.0d1", "1.0a2", "1.0b1", "1.0b10", "1.0fc1", "1", "1.0.1", "1.1", "1.2", "1.9.9",
      "1.10",
      "1.10.1", "2", "9.99", "10", "20260101", "99999999999999999999", "100000000000000000000",
    ]
    for (index, one) in ordered.enumerated() {
      for (otherIndex, other) in ordered.enumerated() {
        #expect((AppVersion(one) < AppVersion(other)) == (index < otherIndex), "\(one) and \(other)")
        #expect((AppVersion(one) == AppVersion(other)) == (index == otherIndex), "\(one) and \(other)")
      }
    }
  }

  @Test(arguments: [
    ("1", "1.0"), ("1.0", "1.0.0.0"), ("01.2", "1.02"), ("0", ""), ("1.0B3", "1.0beta3"), ("1.x", "1"),
  ])
  func sameVersionsAreTheSame(one: String, other: String) {
    #expect(AppVersion(one) == AppVersion(other))
  }
}
