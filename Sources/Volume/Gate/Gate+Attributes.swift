// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy

// Questions about attributes. Each is answered by the function of Policy that is called.

extension Gate {
  /// Throws unless the caller may give the object this mode.
  func authorizeMode(_ mode: FileMode, on object: Object, by caller: Caller) throws(Errno) {
    try enforceAsOwner(on: object, by: caller) { credentials, isMember in
      decideModeChange(to: mode, on: object, throughApp: isApps, by: credentials, isMember: isMember)
    }
  }

  /// The mode that the caller can give something of this group, out of the one that they ask for.
  func allowedMode(_ mode: FileMode, gid: UInt32, isDirectory: Bool, by caller: Caller) -> FileMode {
    Policy.allowedMode(
      mode, gid: gid, isDirectory: isDirectory, throughApp: isApps, by: credentials(of: caller)
    ) { gid in isMember(caller, of: gid) ? .member : .notMember }
  }

  /// Throws unless the caller may give the object these ids.
  func authorizeOwners(uid: UInt32?, gid: UInt32?, on object: Object, by caller: Caller) throws(Errno) {
    try enforceAsOwner(on: object, by: caller) { credentials, isMember in
      decideOwnerChange(uid: uid, gid: gid, on: object, by: credentials, isMember: isMember)
    }
  }

  /// Throws unless the caller may set the object's times.
  ///
  /// Corresponds to `utimensat(2)`: who may not set them to now gets EACCES, and EPERM for any other time.
  func authorizeTimes(toNow isNow: Bool, on object: Object, by caller: Caller) throws(Errno) {
    if isNow {
      try enforce(on: object, by: caller) { credentials, isMember in
        decideTimeChange(toNow: true, on: object, by: credentials, isMember: isMember)
      }
    } else {
      try enforceAsOwner(on: object, by: caller) { credentials, isMember in
        decideTimeChange(toNow: false, on: object, by: credentials, isMember: isMember)
      }
    }
  }

  /// Throws unless the caller may give the object these flags.
  func authorizeFlags(_ flags: FileFlags, on object: Object, by caller: Caller) throws(Errno) {
    try enforceAsOwner(on: object, by: caller) { credentials, isMember in
      decideFlagChange(to: flags, on: object, by: credentials, isMember: isMember)
    }
  }

  /// Throws unless the caller may open the object without a trace in its access time.
  ///
  /// Corresponds to `O_NOATIME`.
  func authorizeSparingTimes(of object: Object, by caller: Caller) throws(Errno) {
    try decideAsOwner(on: object, by: credentials(of: caller)).enforce(in: object.zone)
  }

  /// Throws if no program may be started on the volume, as its mount says.
  ///
  /// Corresponds to the mount option `noexec`.
  func authorizeProgram(on object: Object, isForbidden: Bool) throws(Errno) {
    try decideProgram(isForbidden: isForbidden).enforce(in: object.zone, reach: object.reach)
  }

  /// Throws unless the caller may set and remove such an extended attribute.
  func authorizeExtendedAttribute(
    in namespace: AttributeNamespace, on object: Object, by caller: Caller
  ) throws(Errno) {
    try enforce(on: object, by: caller) { credentials, isMember in
      decideExtendedAttributeChange(in: namespace, on: object, by: credentials, isMember: isMember)
    }
  }

  /// Throws unless the caller may see the names of the object's extended attributes.
  func authorizeAttributeNames(of object: Object, by caller: Caller) throws(Errno) {
    try enforce(on: object, by: caller) { credentials, isMember in
      decideAttributeNames(on: object, by: credentials, isMember: isMember)
    }
  }

  /// Throws unless the caller may make a file lose its capabilities.
  func authorizeCapabilityRemoval(on object: Object, by caller: Caller) throws(Errno) {
    try enforce(on: object, by: caller) { credentials, isMember in
      decideCapabilityRemoval(on: object, by: credentials, isMember: isMember)
    }
  }
}
