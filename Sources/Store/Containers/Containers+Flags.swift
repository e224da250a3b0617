// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

// Flags apply to root too: whoever acts for a user overrides none.

extension Containers {
  /// Throws if flags of a directory stand against something; `place` is its path, for messages.
  func requireNoFlags(against rights: Rights, on directory: FD, at place: String) throws(StoreError) {
    let reason = try explaining("read the flags of", place) { () throws(Errno) in
      try flags(against: rights, on: directory)
    }
    if let reason { throw .restrained(path: place, reason: KeptReason.flags(reason).words) }
  }

  /// The same for what is in a directory, or is about to be, and whose path is `place`.
  func requireNoFlags(against rights: Rights, above place: String, on parent: FD) throws(StoreError) {
    let reason = try explaining("read the flags above", place) { () throws(Errno) in
      try flags(against: rights, on: parent)
    }
    if let reason { throw .restrained(path: place, reason: Self.words(forFlagsAbove: reason)) }
  }

  func flags(against rights: Rights, on directory: FD) throws(Errno) -> FileFlags? {
    let flags = try metadata.security(of: directory).flags
    return flags.refuse(rights, to: .directory) ? flags : nil
  }

  static func words(forFlagsAbove flags: FileFlags) -> String {
    "the directory that it is in has the flags \(flags.words)"
  }
}
