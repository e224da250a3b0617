// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// The attribute that says of a file that it came from elsewhere, in the form that Macs give it: flags, the
/// time in seconds since 1970, who brought it, and a number for the one occasion.
enum Quarantine {
  static let attribute = "user.com.apple.quarantine"

  /// Of something that is delivered now: downloaded, and not looked at by its user yet.
  static func ofDelivery(at seconds: Int = time(nil), number: String = UUIDText.random()) -> [UInt8] {
    let time = String(UInt32(truncatingIfNeeded: seconds), radix: 16)
    let digits = String(repeating: "0", count: 8 - time.count) + time
    return Array("0081;\(digits);insula;\(number)".utf8)
  }
}
