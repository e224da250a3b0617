// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// A release of Linux, as far as what it can do depends on it.
package struct KernelRelease: Comparable, Sendable {
  package let major: Int
  package let minor: Int

  package init(_ major: Int, _ minor: Int) {
    self.major = major
    self.minor = minor
  }

  /// Reads what `uname -r` prints; anything else counts as the oldest.
  package init(_ text: String) {
    let numbers = text.split(whereSeparator: { !$0.isNumber }).prefix(2).compactMap { Int($0) }
    if numbers.count == 2 { self.init(numbers[0], numbers[1]) } else { self.init(0, 0) }
  }

  /// The one that is running.
  package static let own: KernelRelease = {
    var name = utsname()
    guard Glibc.uname(&name) == 0 else { return KernelRelease(0, 0) }
    return withUnsafeBytes(of: &name.release) { bytes in
      KernelRelease(String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self))
    }
  }()

  package static func < (a: KernelRelease, b: KernelRelease) -> Bool {
    (a.major, a.minor) < (b.major, b.minor)
  }
}
