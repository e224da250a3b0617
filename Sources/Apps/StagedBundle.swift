// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Store
internal import Synchronization

/// What was seen of a bundle that is about to be copied; nothing of it is relied on.
struct SeenBundle {
  let contents: AppContents
  /// From the bundle's own directory.
  let executablePath: String
  let size: TreeSize
}

/// A copy that has been verified, and is on disk.
struct VerifiedCopy {
  let tree: StagedTree
  let contents: AppContents
  let seal: [UInt8]
}

extension Installer {
  /// Looks at a source's signature and size, as the caller: most of what is no good ends here, with nothing
  /// copied.
  func look(
    at source: FD, _ name: String, _ caller: CallerIdentity, _ report: InstallReport
  ) throws(AppFailure) -> SeenBundle {
    let now = time()
    let trust = trust
    return try onThread(as: caller) { () throws(AppFailure) in
      let bundle = try Self.bundle(source, name)
      let contents = try AppContents(bundle, bundle.verifySignature(trust, at: now))
      do throws(Errno) {
        return SeenBundle(
          contents: contents, executablePath: bundle.fromRoot(bundle.executablePath),
          size: try TreeSize.measured(source))
      } catch {
        throw .refused(bundle: name, [Bundles.Finding(.unreadable, detail: error.message)])
      }
    }
  }

  /// Copies a source and verifies the copy.
  func copy(
    _ source: FD, named name: String, _ seen: SeenBundle, for directory: borrowing AppsDirectory,
    _ caller: CallerIdentity,
    _ report: InstallReport
  ) throws(AppFailure) -> VerifiedCopy {
    try report.checkCancelled()
    report.expect(seen.size)
    try checkSpace(for: seen.size)
    report.enter(.copying)
    let known = KnownDigests()
    let executable = seen.executablePath
    var limits = TreeCopy.Limits()
    // There is room for so much.
    limits.bytes = seen.size.bytes
    let plan = TreeCopy(
      uid: directory.uid, gid: directory.gid, limits: limits, reader: caller.reader,
      progress: { report.copied($0) },
      isCancelled: report.wait.isCancelled,
      // The main executable is sealed page by page.
      follower: { $0.utf8.elementsEqual(executable.utf8) ? nil : CopiedDigest(known) })
    let tree: StagedTree
    do {
      tree = try StagedTree(source, in: store, for: directory.path, plan)
    } catch let failure as TreeCopyFailure {
      if failure.reason == .cancelled { throw .cancelled }
      throw .notCopied(bundle: name, failure)
    } catch let error as StoreError {
      throw .store(error)
    } catch {
      throw .notCopied(
        bundle: name, TreeCopyFailure(path: "", reason: .failed(doing: "copy", error as? Errno ?? .EIO)))
    }
    report.enter(.verifying)
    return try verify(tree, name, known, for: caller, report)
  }

  /// Looks at all of a copy, while the disk takes it in; what is `known` of it was computed from what was
  /// written.
  func verify(
    _ tree: StagedTree, _ name: String, _ known: KnownDigests, for caller: CallerIdentity,
    _ report: InstallReport
  ) throws(AppFailure) -> VerifiedCopy {
    let synchronization = DiskSynchronization(of: store)
    // The seal of a large app takes a lot of memory, and the process goes on for months.
    defer { clx_return_free_memory() }
    let bounds = VerificationBounds(user: caller.uid, isCancelled: report.wait.isCancelled)
    let result = Result { () throws(AppFailure) in
      let top = try opening("") { () throws(Errno) in try tree.open() }
      let bundle = try Self.bundle(top.fd, name, known, bounds)
      let contents = try AppContents(bundle, bundle.verify(trust, at: time(), includingStrangers: false))
      do throws(Bundles.Finding) {
        return VerifiedCopy(tree: tree, contents: contents, seal: try bundle.sealDigest())
      } catch {
        throw .refused(bundle: name, [error])
      }
    }
    let error = synchronization.end()
    // What was not looked at to the end is not refused for that.
    try report.checkCancelled()
    let copy = try result.get()
    if let error { throw .failed(doing: "write to disk the copy in", path: store.path, errno: error) }
    return copy
  }

  /// Opens a bundle's directory again, so that nobody else's reading disturbs ours.
  private static func bundle(
    _ directory: FD, _ name: String, _ known: KnownDigests? = nil, _ bounds: VerificationBounds? = nil
  ) throws(AppFailure) -> CodeBundle {
    let root: OwnedFD
    do throws(Errno) { root = try directory.reopened(O_RDONLY | O_DIRECTORY) } catch {
      throw .refused(bundle: name, [Bundles.Finding(.unreadable, detail: error.message)])
    }
    do throws(Bundles.Finding) {
      return try CodeBundle(in: root, name: name, known: known, bounds: bounds)
    } catch {
      throw .refused(bundle: name, [error])
    }
  }

  private func checkSpace(for size: TreeSize) throws(AppFailure) {
    let status = try opening("") { () throws(Errno) in try store.tree.filesystemStatus() }
    let free = Int64(
      clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue)
    guard size.bytes <= free else { throw .noSpace(needed: size.bytes, free: free, path: store.path) }
  }

  /// Does something that only reads, as the caller.
  private func onThread<Result: Sendable>(
    as caller: CallerIdentity, _ body: @escaping @Sendable () throws(AppFailure) -> Result
  ) throws(AppFailure) -> Result {
    guard let reader = caller.reader else { return try body() }
    let answer = Mutex<Swift.Result<Result, AppFailure>?>(nil)
    do throws(Errno) {
      let thread = try JoinableThread(name: "look") {
        let result = Swift.Result { () throws(AppFailure) in
          do throws(Errno) { try reader.prepareThread() } catch {
            throw .failed(doing: "read as uid", path: "\(reader.uid)", errno: error)
          }
          return try reader.read(body)
        }
        answer.withLock { $0 = result }
      }
      thread.join()
    } catch {
      throw .failed(doing: "start a thread for", path: store.path, errno: error)
    }
    guard let result = answer.withLock({ $0 }) else { throw .cancelled }
    return try result.get()
  }
}
