// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Policy

/// Why the gate has refused something.
///
/// An operation only throws an errno. So the gate leaves the reason with the thread, and whoever answers the
/// request takes it from there (`Session.refused`). What is allowed touches none of this.
struct RefusalNote: Equatable {
  let denial: Denial
  /// Those of what it is about, where that is known.
  let zone: Zone?
  let reach: Reach?

  init(_ denial: Denial, _ zone: Zone?, _ reach: Reach?) {
    self.denial = denial
    self.zone = zone
    self.reach = reach
  }

  /// Leaves it with this thread, in place of an earlier one.
  func leave() { clx_note_refusal(number) }

  /// Takes what was left with this thread; 0 if there is nothing.
  static func take() -> UInt64 { clx_take_refusal() }

  // One byte for each, plus one: 0 stands for nothing.

  var number: UInt64 {
    func byte(_ value: UInt8?) -> UInt64 { value.map { UInt64($0) + 1 } ?? 0 }
    return byte(denial.rawValue) | byte(zone?.rawValue) << 16 | byte(reach?.rawValue) << 32
  }

  init?(_ number: UInt64) {
    func value(_ shift: UInt64) -> UInt8? {
      let part = UInt16(truncatingIfNeeded: number >> shift)
      return part == 0 ? nil : UInt8(truncatingIfNeeded: part - 1)
    }
    guard let denial = value(0).flatMap(Denial.init(rawValue:)) else { return nil }
    self.init(denial, value(16).flatMap(Zone.init(rawValue:)), value(32).map(Reach.init(rawValue:)))
  }
}
