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

  // The value of each, plus one: 0 stands for nothing.

  var number: UInt64 {
    func part(_ value: UInt16?) -> UInt64 { value.map { UInt64($0) + 1 } ?? 0 }
    return part(UInt16(denial.rawValue)) | part(zone.map { UInt16($0.rawValue) }) << 16
      | part(reach?.rawValue) << 32
  }

  init?(_ number: UInt64) {
    func value(_ shift: UInt64) -> UInt16? {
      let part = UInt16(truncatingIfNeeded: number >> shift)
      return part == 0 ? nil : part - 1
    }
    func byte(_ shift: UInt64) -> UInt8? { value(shift).flatMap { UInt8(exactly: $0) } }
    guard let denial = byte(0).flatMap(Denial.init(rawValue:)) else { return nil }
    self.init(denial, byte(16).flatMap(Zone.init(rawValue:)), value(32).map(Reach.init(rawValue:)))
  }
}
