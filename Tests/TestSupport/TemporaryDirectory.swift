// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO

/// A directory for one test, removed with all that is in or mounted on it when the test is over.
package final class TemporaryDirectory: Sendable {
  package let path: String

  /// Makes it in /tmp, so that ordinary users reach it too.
  package init(mode: UInt32 = 0o755) throws {
    var template = Array("/tmp/insula-test-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Errno.last }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    _ = chmod(path, mode)
  }

  deinit {
    for mount in (try? MountTable.current())?.below(path).reversed() ?? [] {
      try? unmount(mount.mountPoint, lazily: true)
    }
    guard let parent = try? Self.open("/tmp") else { return }
    try? String(path.dropFirst("/tmp/".count)).withName { (name) throws(Errno) in
      try parent.fd.removeTree(name)
    }
  }

  /// The path of something in it.
  package func appending(_ name: String) -> String { path + "/" + name }

  /// Opens it for reading.
  package func open() throws(Errno) -> OwnedFD { try Self.open(path) }

  /// Opens any directory for reading.
  package static func open(_ path: String) throws(Errno) -> OwnedFD {
    try path.withName { (name) throws(Errno) in try FD.cwd.openFollowing(name, O_RDONLY | O_DIRECTORY) }
  }

  /// Makes a directory in it.
  @discardableResult
  package func makeDirectory(_ name: String, mode: UInt32 = 0o755) throws -> String {
    let path = appending(name)
    guard mkdir(path, 0o755) == 0, chmod(path, mode) == 0 else { throw Errno.last }
    return path
  }

  /// Makes a file in it, or writes one anew.
  @discardableResult
  package func write(_ text: String, to name: String) throws -> String {
    let path = appending(name)
    // What is there already is opened without O_CREAT: a machine may refuse that in sticky directories, even
    // to root (fs.protected_regular).
    var raw = Glibc.open(path, O_WRONLY | O_TRUNC | O_CLOEXEC)
    if raw < 0 { raw = creat(path, 0o644) }
    guard raw >= 0 else { throw Errno.last }
    let file = OwnedFD(owning: raw)
    try file.fd.writeAll(text.utf8)
    return path
  }

  /// What is in a file.
  package func text(of name: String) -> String? { FD.text(of: appending(name), limit: 1 << 20) }

  /// The names in a directory of it, sorted.
  package func names(in name: String = ".") throws -> [String] {
    let directory = try Self.open(appending(name))
    return try directory.fd.entries().map { String(decoding: $0.name, as: UTF8.self) }.sorted()
  }
}

/// Removes a standard directory of a home in which there is nothing but what it began with.
///
/// Corresponds to `rmdir(2)`.
package func removeMarked(_ path: String) -> Int32 {
  _ = unlink(path + "/.localized")
  return rmdir(path)
}
