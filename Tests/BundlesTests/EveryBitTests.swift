// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import TestSupport
internal import Testing

/// Random damage to a signed bundle of two hundred files: all of it is found, and nothing else.
@Suite struct EveryBitTests {
  /// All damages of a run; `make fuzz` does twenty thousand.
  static let damages = getenv("INSULA_DAMAGES").flatMap { Int(String(cString: $0)) } ?? 160

  @Test(arguments: [1, 2] as [UInt64])
  func everyDamageIsFound(seed: UInt64) throws {
    var vandal = try Vandal(seed: seed)
    #expect(vandal.fileCount >= 200)
    #expect(vandal.findings().isEmpty)
    var counts: [Vandal.Act: (done: Int, tolerated: Int)] = [:]
    for number in 0..<(Self.damages / 2) {
      let damage = try vandal.damage()
      let findings = vandal.findings()
      #expect(
        findings.isEmpty == damage.isTolerated, "\(number): \(damage.name): \(findings.map(\.message))")
      counts[damage.act, default: (0, 0)].done += 1
      if findings.isEmpty { counts[damage.act, default: (0, 0)].tolerated += 1 }
      try vandal.repair()
    }
    // The last repair has left nothing, so none has.
    #expect(vandal.findings().isEmpty)
    #expect(counts.count == Vandal.Act.allCases.count)
    guard getenv("INSULA_DAMAGES") != nil else { return }
    for (act, count) in counts.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      print(
        "seed \(seed), \(act.rawValue): \(count.done) damages, \(count.tolerated) that the rules tolerate")
    }
  }
}
