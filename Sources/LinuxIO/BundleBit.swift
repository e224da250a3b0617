// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension FD {
  /// Whether the Finder's bundle bit is set (0x2000 of the flags at byte 8 of `com.apple.FinderInfo`): a
  /// directory with it is a package.
  ///
  /// An attribute that is not as long as it must be says nothing.
  package var hasBundleBit: Bool {
    withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { info in
      let count = try? "user.com.apple.FinderInfo".withName { (name) throws(Errno) in
        try attribute(name.bytes, into: info)
      }
      return count == 32 && info[8] & 0x20 != 0
    }
  }
}
