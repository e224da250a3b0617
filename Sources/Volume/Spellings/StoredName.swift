// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// A name as a directory has it, or would get it: what rules, grants and calls are about.
///
/// Hold it in a variable for as long as its name is used.
struct StoredName: ~Copyable {
  let name: Name
  private let copy: UnsafeMutablePointer<CChar>?
  /// Whether nothing has the name in any spelling, as far as that was found out.
  let isFree: Bool
  /// Whether the directory has room for a name more.
  let hasRoom: Bool

  /// The name that was asked for.
  init(_ name: Name, isFree: Bool = false, hasRoom: Bool = true) {
    self.name = name
    self.hasRoom = hasRoom
    self.isFree = isFree
    copy = nil
  }

  /// Another spelling of it.
  init(_ bytes: [UInt8], isFree: Bool = false) {
    let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count + 1)
    for (index, byte) in bytes.enumerated() { copy[index] = CChar(bitPattern: byte) }
    copy[bytes.count] = 0
    self.copy = copy
    hasRoom = true
    self.isFree = isFree
    name = Name(copy)
  }

  deinit { copy?.deallocate() }

  /// Whether it is not what was asked for.
  ///
  /// The kernel must not keep it then: what it knows by one spelling it would not forget by another.
  var isOther: Bool { copy != nil }
}
