// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO

/// Why a keeper has taken its mount away: `state/gave-up` in the store, until that is mounted again.
package struct GaveUp: Sendable {
  /// In seconds since 1970.
  package let time: Int64
  package let reason: String

  private static let fileName = "gave-up"

  // A full or read-only disk takes no note; the log may have it.
  static func note(_ reason: String, in state: FD) {
    forget(in: state)
    let file = try? state.open(fileName, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
    if let file { try? file.fd.writeAll(reason.utf8) }
  }

  static func forget(in state: FD) { try? state.remove(fileName, directory: false) }

  /// The note in the store's state directory; nil if there is none.
  package init?(in state: FD) {
    guard let file = try? state.open(Self.fileName, O_RDONLY | O_NOFOLLOW),
      let status = try? file.fd.status(), status.isRegular, let text = try? file.fd.readToEnd(limit: 4096)
    else { return nil }
    time = status.modifiedNanoseconds / 1_000_000_000
    // A full disk has taken the name and nothing else.
    let words = String(decoding: text, as: UTF8.self)
    reason = words.isEmpty ? "the process that serves has died again and again" : words
  }
}
