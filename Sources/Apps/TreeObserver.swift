// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
package import Policy

/// A change of a tree that may be mounted, by what it does to one name.
package enum TreeChange: Equatable, Sendable {
  /// A directory that was missing is made; it is no bundle.
  case directory(name: String, in: String)
  /// A bundle appears where nothing was.
  case appears(BundlePlace, seal: [UInt8])
  /// A bundle takes the place of another one.
  case replaced(BundlePlace, seal: [UInt8], before: [UInt8])
  /// A bundle goes.
  case goes(BundlePlace, seal: [UInt8])
  /// Something that was made beside a container comes into its Inbox: its name, the directory it was made in,
  /// and the Inbox.
  case delivered(name: String, from: String, inbox: String)
  /// A container changes places with a directory beside it: their names, and the directory they are in.
  case exchanged(name: String, with: String, in: String)
  /// What the system domain consists of is exchanged as a whole, by the digests of both seals; one of no
  /// bytes where there is none.
  case system(root: [UInt8], before: [UInt8])
}

/// Where a bundle is: the path of its directory below the root of the tree, without a slash at either end,
/// and its name there.
package struct BundlePlace: Hashable, Sendable {
  package let parent: String
  package let name: String

  package init(parent: String, name: String) {
    self.parent = parent
    self.name = name
  }

  /// The place of what has that path.
  package init(path: String) {
    (parent, name) = path.splitAtName
  }

  package var path: String { parent.isEmpty ? name : "\(parent)/\(name)" }

  // Byte by byte: two that look alike are two.

  package static func == (one: BundlePlace, other: BundlePlace) -> Bool {
    one.path.hasSameBytes(as: other.path)
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(ExactText(path)) }
}

/// Observes changes of the tree: implemented by a daemon that serves it meanwhile.
package protocol TreeObserver: Sendable {
  /// Does `body`, the one call that makes a change visible, and tells all who look.
  ///
  /// What `body` throws is thrown; then nothing has changed.
  func changing(_ change: TreeChange, _ body: () throws(Errno) -> Void) throws(Errno)

  /// What was interrupted at a path has ended, without a change now: a bundle of that seal is there, or none.
  func settled(_ path: String, seal: [UInt8]?)

  /// What runs from a bundle, or from the system domain, which then stays as it is: changing it is EBUSY.
  func users(of path: String) -> [String]

  /// Whether an app runs for a user, or is just beginning or ending.
  func runs(_ app: AppIdentifier, of user: UInt32) -> Bool

  /// Ends those of these apps that run, since what they have becomes another app's.
  ///
  /// Called before that and after it: what has begun to run between is ended as well.
  func end(_ former: FormerApps)

  /// Does `body` while an app does not run for a user, and does not begin to; EBUSY if it does,
  /// EREMOTE if it may on another machine.
  func whileClosed(
    _ app: AppIdentifier, of user: UInt32, _ body: () throws(Errno) -> Void
  ) throws(Errno)
}

/// For a tree that is not mounted, so that nobody observes it.
package struct NoTreeObserver: TreeObserver {
  package init() {}

  package func changing(_ change: TreeChange, _ body: () throws(Errno) -> Void) throws(Errno) { try body() }
}

extension TreeObserver {
  package func users(of path: String) -> [String] { [] }

  package func runs(_ app: AppIdentifier, of user: UInt32) -> Bool { false }

  package func end(_ former: FormerApps) {}

  package func settled(_ path: String, seal: [UInt8]?) {}

  package func whileClosed(
    _ app: AppIdentifier, of user: UInt32, _ body: () throws(Errno) -> Void
  ) throws(Errno) {
    try body()
  }
}
