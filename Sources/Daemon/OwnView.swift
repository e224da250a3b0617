// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
package import LinuxIO

/// The view of an app whose daemon has no right to mount: who runs the app mounts it, and hands the
/// connection over.
package enum OwnView {
  /// Mounts over a directory, in namespaces of our own; nothing in it can be run.
  package static func mount(over directory: FD, source: String) throws(Errno) -> OwnedFD {
    try Mount.ofOurOwn(over: directory, source: source, [.noDevices, .noSetUserID, .noPrograms])
  }
}
