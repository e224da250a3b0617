// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// A directory on ext4: a plain one where temporary files lie on it, else an image of its own; root only.
package final class Ext4: Sendable {
  private let temporary: TemporaryDirectory
  package let path: String

  /// With a size it is always an image of its own, and can be filled.
  ///
  /// Only without a journal is the number of a file that has gone given to the next one. `reserved` percent
  /// of it are root's.
  package init(megabytes: Int? = nil, journal: Bool = true, reserved: Int = 0) throws {
    temporary = try TemporaryDirectory()
    let directory = try temporary.open()
    if megabytes == nil, try directory.fd.filesystemKind().name == "ext4" {
      path = temporary.path
      return
    }
    path = try temporary.makeDirectory("disk")
    let image = try temporary.write("", to: "image")
    guard truncate(image, off_t(megabytes ?? 2048) << 20) == 0 else { throw Errno.last }
    for words in [
      ["mkfs.ext4", "-q", "-F", "-m", "\(reserved)", "-O", (journal ? "" : "^") + "has_journal", image],
      ["mount", "-o", "loop", image, path],
    ] {
      let result = try Program.run(words, environment: ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"])
      guard result.status == 0 else { throw MountedStore.Failure(words: "\(words): \(result.errors)") }
    }
  }

  /// Makes a directory that everyone may write to.
  package func makeOpenDirectory(_ name: String) throws -> String {
    let made = path + "/" + name
    guard mkdir(made, 0o777) == 0, chmod(made, 0o1777) == 0 else { throw Errno.last }
    return made
  }
}
