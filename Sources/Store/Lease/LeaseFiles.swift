// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

/// The directory `state/lease`: a file for each time that the lease was taken, called by its number.
///
/// Making a file that must not exist is what all filesystems of servers do for one machine alone.
struct LeaseFiles: ~Copyable {
  private let directory: OwnedFD

  static let name = "lease"
  /// So many are kept: a machine that has looked for the highest number a while ago must not find the next
  /// one free again.
  private static let kept: UInt64 = 256

  init(in state: FD) throws(Errno) { directory = try state.openDirectory(Self.name, makingWith: 0o700) }

  /// To look at it; ENOENT if the store never had a lease.
  init(lookingIn state: FD) throws(Errno) { directory = try state.openDirectory(Self.name) }

  /// What the highest number says.
  func top() throws(Errno) -> (top: LeaseAcquisition.Top, record: LeaseRecord?) {
    guard let number = try highest() else { return (.none, nil) }
    // No lease has been taken so often.
    guard number < 1 << 62 else { throw .EOVERFLOW }
    let text: [UInt8]
    do throws(Errno) { text = try directory.fd.contents(of: Self.name(of: number), limit: 4096) } catch {
      guard error == .ENOENT || error == .ESTALE else { throw error }
      text = []
    }
    guard let record = LeaseRecord(text) else { return (.held(number: number, text: text), nil) }
    let isFree = record.isReleased || record.process.hasEnded
    return (isFree ? .free(number: number) : .held(number: number, text: text), record)
  }

  func highest() throws(Errno) -> UInt64? { try numbers().max() }

  /// Makes the file of a number; nil if it is there.
  func make(_ number: UInt64, _ record: LeaseRecord) throws(Errno) -> OwnedFD? {
    let text = try record.encoded()
    let file: OwnedFD
    do throws(Errno) {
      file = try directory.fd.open(
        Self.name(of: number), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
    } catch .EEXIST {
      return nil
    }
    try Self.write(text, to: file.fd)
    try directory.fd.synchronize(dataOnly: false)
    return file
  }

  static func write(_ text: [UInt8], to file: FD) throws(Errno) {
    try file.writeAll(text, at: 0)
    try file.synchronize(dataOnly: true)
  }

  /// Opens the file of a number to go on with.
  func open(_ number: UInt64) throws(Errno) -> OwnedFD {
    try directory.fd.open(Self.name(of: number), O_RDWR | O_NOFOLLOW)
  }

  func removeOld(before number: UInt64) {
    guard number > Self.kept, let numbers = try? numbers() else { return }
    for old in numbers where old < number - Self.kept {
      try? directory.fd.remove(Self.name(of: old), directory: false)
    }
  }

  private func numbers() throws(Errno) -> [UInt64] {
    // What one machine has of a directory may be old; a new descriptor makes clients ask.
    let listing = try directory.fd.reopened(O_RDONLY | O_DIRECTORY)
    return try listing.fd.entries().compactMap { UInt64(String(decoding: $0.name, as: UTF8.self)) }
  }

  private static func name(of number: UInt64) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, 20 - digits.utf8.count)) + digits
  }
}
