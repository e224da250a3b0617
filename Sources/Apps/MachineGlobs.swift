// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
package import Policy

extension MIMEGlobs {
  /// More than a hundred times what there is.
  private static let longest = 8 << 20

  /// What this machine has; nothing where shared-mime-info is not installed, or is not what it should be.
  package static func ofMachine() -> MIMEGlobs {
    guard let file = try? FD.cwd.openFollowing(path, O_RDONLY | O_NONBLOCK),
      let bytes = try? file.fd.readToEnd(limit: longest)
    else { return MIMEGlobs() }
    return MIMEGlobs(globs2: String(decoding: bytes, as: UTF8.self))
  }

  /// The names of all MIME types that this machine knows, also of those that no extension stands for, and the
  /// other names that they have.
  package static func allOfMachine() -> Set<String> {
    var names: Set<String> = []
    for file in ["types", "aliases"] {
      guard let file = try? FD.cwd.openFollowing("/usr/share/mime/\(file)", O_RDONLY | O_NONBLOCK),
        let bytes = try? file.fd.readToEnd(limit: longest)
      else { continue }
      for line in bytes.split(separator: UInt8(ascii: "\n")) {
        names.insert(String(decoding: line.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self).lowercased())
      }
    }
    return names
  }
}
