// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

// Files of a bundle that is being made.

extension FD {
  /// Opens the directory that a path's last name is in, below this one, and makes those on the way.
  func withMadeParent<Result: ~Copyable>(
    of path: String, _ body: (FD, String) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let parts = path.parts(between: "/").map(String.init)
    var parent = try duplicated()
    for part in parts.dropLast() {
      let above = parent.fd
      parent = try above.openDirectory(part, makingWith: 0o755)
    }
    return try body(parent.fd, parts.last ?? "")
  }

  /// Makes a file that was not there; none is left if that fails.
  func makeFile(_ name: String, _ bytes: [UInt8], mode: FileMode) throws(Errno) {
    try makeFile(name, mode: mode) { (file) throws(Errno) in try file.writeAll(bytes) }
  }

  /// The same, with what is in another file, and at its time.
  func makeFile(_ name: String, copying source: FD, mode: FileMode) throws(Errno) {
    let time = try source.status().st_mtim
    try makeFile(name, mode: mode) { (file) throws(Errno) in
      var buffer = [UInt8](repeating: 0, count: 1 << 17)
      var offset: Int64 = 0
      while true {
        var count = 0
        var failure: Errno?
        buffer.withUnsafeMutableBytes { buffer in
          do throws(Errno) { count = try source.read(into: buffer, at: offset) } catch { failure = error }
        }
        if let failure { throw failure }
        if count <= 0 { break }
        try file.writeAll(buffer[..<count])
        offset += Int64(count)
      }
      try file.changeTimes(access: .set(time), modification: .set(time))
    }
  }

  private func makeFile(
    _ name: String, mode: FileMode, _ fill: (FD) throws(Errno) -> Void
  ) throws(Errno) {
    let file = try open(name, O_WRONLY | O_CREAT | O_EXCL, mode: mode)
    do throws(Errno) { try fill(file.fd) } catch {
      try? remove(name, directory: false)
      throw error
    }
  }
}
