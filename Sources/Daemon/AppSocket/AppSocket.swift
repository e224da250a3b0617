// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

/// Where the socket of an app is made, and where the app finds it.
package enum AppSocket {
  package static let name = "app.sock"
  /// The directory in the sandbox.
  package static let directory = "/run/insula"
  package static let path = directory + "/" + name
  /// The variable that names it to programs.
  package static let variable = "INSULA_SOCKET"

  /// Makes the socket in a directory of the caller's own, for a daemon that is the caller's too.
  package static func listen(in directory: FD) throws(Errno) -> OwnedFD {
    try LocalSocket.listen(in: directory, name: name, mode: 0o600, takesDescriptors: false)
  }
}
