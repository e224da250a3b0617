// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

/// Copies a tree as a bundle is to be installed, by as many threads as there are CPUs.
///
/// - Both sides are reached by descriptors and single names; no link is followed, no other filesystem
///   entered.
/// - Contents come over as they are: by sharing blocks where the filesystem can, holes as holes. So do
///   symbolic links, times, and attributes of users.
/// - What is not sealed is made uniform: directories have mode 0755, files 0644 or, if their owner could run
///   them, 0755; all of it belongs to one owner. Files that had several names are files of their own.
/// - Who has it read as themselves, and is that owner, writes it as themselves too: with their room on the
///   disk, and their quota.
/// - Anything else (devices, fifos, sockets) ends it, and so does a failure; the caller removes what there is
///   by then.
///
/// What the source contains may change while it is read. So what is to be relied on is checked in the copy,
/// not in the source.
package struct TreeCopy: Sendable {
  /// How much there is of it.
  package struct Count: Equatable, Sendable {
    package var directories = 0
    package var files = 0
    package var links = 0
    package var bytes: Int64 = 0

    package init() {}
  }

  /// What bounds it: more is no bundle.
  package struct Limits: Sendable {
    package var depth = 100
    package var entries = 1_000_000
    /// How long all files may be together; by their lengths, whatever they take on a disk.
    package var bytes: Int64 = .max
    package init() {}
  }

  /// Whose the copy is.
  let uid: UInt32
  let gid: UInt32
  let limits: Limits
  /// As whom the source is read; nil for this process itself.
  let reader: ReaderIdentity?
  let progress: @Sendable (Count) -> Void
  let isCancelled: @Sendable () -> Bool
  let follower: @Sendable (String) -> (any CopyFollower)?

  /// `progress` is called after each file, and now and then during a large one: by any thread, but by one at
  /// a time.
  ///
  /// `follower` says who wants to take in what is in a large file, by its path below the top.
  package init(
    uid: UInt32, gid: UInt32, limits: Limits = Limits(), reader: ReaderIdentity? = nil,
    progress: @escaping @Sendable (Count) -> Void = { _ in },
    isCancelled: @escaping @Sendable () -> Bool = { false },
    follower: @escaping @Sendable (String) -> (any CopyFollower)? = { _ in nil }
  ) {
    self.uid = uid
    self.gid = gid
    self.limits = limits
    self.reader = reader
    self.isCancelled = isCancelled
    self.progress = progress
    self.follower = follower
  }

  /// Copies `source`, a directory that is open for reading, to the new directory `name`.
  ///
  /// What it gives is not on disk yet.
  package func copy(_ source: FD, to name: Name, in parent: FD) throws(TreeCopyFailure) -> Count {
    let run = TreeCopyRun(self, source, name, parent)
    run.work()
    if let failure = run.failure { throw failure }
    return run.count
  }

  /// The same by a name of ours; what went wrong with the copy is a ``TreeCopyFailure``, and says more than a
  /// number.
  package func copy(_ source: FD, named name: String, in parent: FD) throws -> Count {
    var result: Result<Count, TreeCopyFailure>?
    try name.withName { (name) throws(Errno) in
      result = Result { () throws(TreeCopyFailure) in try copy(source, to: name, in: parent) }
    }
    guard let result else { throw Errno.EINVAL }
    return try result.get()
  }
}
