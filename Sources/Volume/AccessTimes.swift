// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

// In system mode the mount option `noatime` is one of a private mount of the tree
// (LinuxIO/PrivateMount.swift). A user's daemon can't have that; but all data goes through its own
// descriptors, and where they belong to its user Linux lets it spare the times.

extension Volume {
  /// Opens a file for the data that clients want of it.
  ///
  /// With `sparingTime` reading leaves its access time alone whatever the settings say, as far as that can be
  /// had.
  func openForData(_ file: FD, _ flags: Int32, sparingTime: Bool = false) throws(Errno) -> OwnedFD {
    try open(file, flags, sparingTimes: sparingTime || settings.sparesFileTimes)
  }

  /// Opens a directory to be listed.
  func openForListing(_ directory: FD, sparingTime: Bool) throws(Errno) -> OwnedFD {
    let sparingTimes = sparingTime || settings.sparesDirectoryTimes
    do throws(Errno) {
      if !sparingTimes { return try directory.open(Name.here, O_RDONLY | O_DIRECTORY) }
    } catch {
      // A user's daemon may list a directory that it may not walk through; "." is a walk, what follows is
      // not.
      guard error == .EACCES else { throw error }
    }
    return try open(directory, O_RDONLY | O_DIRECTORY, sparingTimes: sparingTimes)
  }

  private func open(_ object: FD, _ flags: Int32, sparingTimes: Bool) throws(Errno) -> OwnedFD {
    guard sparingTimes else { return try object.reopened(flags) }
    do throws(Errno) {
      return try object.reopened(flags | CLX_O_NOATIME)
    } catch .EPERM {
      // Someone else's: only its owner may ask for this.
      return try object.reopened(flags)
    }
  }
}
