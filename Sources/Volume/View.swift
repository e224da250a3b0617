// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
package import Policy
internal import Synchronization

/// One face of a volume: what one connection to the kernel sees.
///
/// Operations are in the files beside this one.
///
/// The view of the whole tree is everyone's, and callers are judged by their ids. That of a running app is
/// one user's, and has only what its scope says.
package final class View: FileSystem {
  package let volume: Volume
  /// What of the tree is in it.
  let scope: ViewScope
  /// Whether it is the view of an app: all others have the whole tree.
  let isApps: Bool
  /// The only one besides root who can ever get here, so that nothing cached for them can be seen by another;
  /// nil if all can.
  let user: UInt32?
  /// That user, for the question whether they may walk through a directory; their other groups are not looked
  /// at.
  private let walker: Subject?
  /// Tells this view's lock owners from those of others, which the kernel numbers apart from ours.
  let number: UInt32
  let nodes: NodeTable
  let files = OpenFiles()
  let directories = OpenDirectories()
  let backings = Backings()
  /// What is read and written now of what was granted, and what may still be written back.
  let grantedUse = GrantedUse()
  /// Where it is noted for the other views what this one knows; nil for the one that is asked itself.
  let known: KnownObjectsOfView?
  let kernel = KernelLink()
  /// Where names were withdrawn at everyone's expense, and so are not remembered for a while.
  let restless: RestlessDirectories
  /// Whether the kernel can be told to look names up again; without that, nothing that a later change may
  /// close is cached.
  private let canWithdraw = Atomic<Bool>(false)
  private let passthroughRefused = Atomic<Bool>(false)
  private let startedSignal: Wakeup

  package init(_ volume: Volume, scope: Scope = .wholeTree, user: UInt32? = nil) throws(Errno) {
    self.volume = volume
    restless = RestlessDirectories(seconds: volume.settings.restSeconds)
    let user = user ?? (volume.settings.isSystem ? nil : ProcessID.user)
    self.user = user
    isApps = scope.root.throughout == nil
    // Whoever can't be told to be in a group gets nothing by it, and is denied what it is denied.
    walker = user.map { Subject(uid: $0, gid: $0 == ProcessID.user ? ProcessID.group : .max) }
    startedSignal = try Wakeup()
    let (number, isIndexed) = volume.views.number()
    self.number = number
    self.scope = ViewScope(scope, of: number, volume.siblings)
    known = isIndexed ? KnownObjectsOfView(all: volume.known, view: number) : nil
    do throws(Errno) {
      let root = try volume.tree.open(Name.here, O_DIRECTORY | pathOnly)
      nodes = try NodeTable(
        root: root, zone: .top, position: scope.root,
        handleRoot: volume.settings.fileHandles ? volume.tree : nil,
        quietRoot: volume.quietTree, share: volume.descriptors, budget: volume.budget, known: known)
    } catch {
      volume.views.ended(number)
      throw error
    }
  }

  deinit { volume.views.ended(number) }

  package func started(_ connection: any Connection) {
    kernel.begin(connection)
    volume.views.add(self)
    canWithdraw.store(connection.entriesChanged(), ordering: .releasing)
    startedSignal.ring()
  }

  package func ended() {
    volume.views.remove(number)
    volume.grants.remove(view: number)
    kernel.end()
    volume.locks.releaseAll(of: number)
    closeAll()
  }

  /// Waits for the kernel to begin; false when the time is over.
  package func waitUntilStarted(milliseconds: Int32) -> Bool {
    (try? startedSignal.fd.waitUntilReadable(milliseconds: milliseconds)) ?? false
  }

  /// The kernel's end.
  ///
  /// There is none before the first request, nor in tests without one.
  var connection: (any Connection)? { kernel.connection }

  /// Whether data goes past the daemon: the kernel can, and the backing filesystem has not refused.
  var usesPassthrough: Bool {
    kernel.passthrough && !passthroughRefused.load(ordering: .relaxed)
  }

  /// Makes a file known to the kernel; nil if its data goes through the daemon.
  ///
  /// The kernel will write it by the limits of the caller. What the first file says of its filesystem (a
  /// stacked one is refused) or of our rights holds for all.
  func registerBacking(_ object: FD, for caller: Caller) -> Int32? {
    guard usesPassthrough, let connection else { return nil }
    do throws(Errno) {
      return try asCaller(caller) { () throws(Errno) in try connection.registerBacking(object) }
    } catch {
      let forGood: [Errno] = [.ELOOP, .EPERM, .EOPNOTSUPP, .ENOTTY, .EINVAL]
      if forGood.contains(error) { passthroughRefused.store(true, ordering: .relaxed) }
      return nil
    }
  }

  /// Whom to charge for what a caller makes grow: an app's share is apart from its user's.
  func payer(_ caller: Caller) -> Payer { payer(of: caller.uid) }

  package func payer(of user: UInt32) -> Payer {
    Payer(user: user, view: isApps ? number : 0)
  }

  /// Whether only one user can ever get here.
  var isPrivate: Bool { user != nil }

  /// Whether everyone who gets here may walk through a directory.
  func isOpenToAll(_ directory: Object) -> Bool {
    walker.map { maySearch(directory, $0) } ?? isSearchableByAll(directory)
  }

  /// For how long the kernel may remember what a name in a directory stands for: only if everyone who gets
  /// here may walk through the directory, or a cached walk would skip the check.
  func entryValidity(in directory: Object, _ number: ObjectNumber) -> Double {
    guard isOpenToAll(directory), canWithdraw.load(ordering: .relaxed),
      !restless.has(number, owner: isPrivate ? nil : directory.uid)
    else { return 0 }
    return volume.settings.cacheSeconds
  }

  /// For how long it may remember that a name is not there.
  ///
  /// What is not there can't be dropped when the directory closes, as a name can that nobody uses: so who
  /// could see it must not see for long what comes after.
  func absenceValidity(_ validity: Double) -> Double { isPrivate ? validity : min(validity, 2) }

  private func maySearch(_ directory: Object, _ walker: Subject) -> Bool {
    decide(.search, on: directory, by: walker) { _ in .unknown } == .allow
  }

  /// What `insula status` shows.
  package struct Counts: Sendable {
    package let nodes: Int
    package let descriptors: Int
    package let openFiles: Int
    package let openDirectories: Int
    package let locks: Int
    package let passthrough: Bool
    /// How often something was refused because it is not what was sealed.
    package let sealRefusals: UInt64
  }

  package var counts: Counts {
    let known = nodes.counts
    return Counts(
      nodes: known.nodes, descriptors: known.descriptors, openFiles: files.count,
      openDirectories: directories.count, locks: volume.locks.count,
      passthrough: usesPassthrough, sealRefusals: volume.sealedPlaces.refusals)
  }
}

extension Object.Kind {
  init(_ status: FileStatus) {
    switch status.type {
    case S_IFREG: self = .file
    case S_IFDIR: self = .directory
    case S_IFLNK: self = .symlink
    default: self = .special
    }
  }
}
