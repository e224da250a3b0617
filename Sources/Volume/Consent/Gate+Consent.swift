// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy

extension Gate {
  /// Throws if a name that the view does not have is in a directory of which nothing is told without consent:
  /// whether there is something of that name, too, is not for the app to know.
  func authorizePrivateName(in directory: Position) throws(Errno) {
    guard scope.hasPrivatePlaces else { return }
    let reach = scope.reach(of: directory)
    try decidePrivateName(in: reach).enforce(reach: reach)
  }
}
