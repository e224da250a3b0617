// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// For people.
extension AppInUse {
  var userName: String { Account.numbered(user)?.name ?? "\(user)" }
  var memoryText: String { Int(clamping: memory).asSize }

  /// Minutes, seconds and hundredths, as `ps` and `top` write it.
  static func text(ofMilliseconds milliseconds: UInt64) -> String {
    let hundredths = milliseconds / 10
    func two(_ number: UInt64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(hundredths / 6000):\(two(hundredths / 100 % 60)).\(two(hundredths % 100))"
  }

  var requestsText: String { requests.map { "\($0)" } ?? "-" }

  var limitsText: String { limits.kinds.isEmpty ? "-" : limits.text }
}
