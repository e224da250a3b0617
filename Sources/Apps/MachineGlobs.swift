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
}
