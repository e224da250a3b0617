// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import LinuxIO
internal import Synchronization

/// The seal of one bundle, or of the system domain, as long as the kernel knows anything of it.
///
/// What it says is loaded when someone first looks for a name in there, and goes with the last node below it.
final class ServedSeal: Sendable {
  /// Where the bundle is, from the root of the tree on.
  let path: String
  /// Reads what the seal says from the directory that it is about.
  private let load: @Sendable (FD) throws(Finding) -> any SealedContents
  private unowned let regions: ReadOnlyRegions
  /// The seal of the bundle around this one, and where this one is in that.
  private let outer: (seal: ServedSeal, path: String)?
  private let retired = Atomic<Bool>(false)
  private let state = OrderedMutex(.seal, State())

  private struct State {
    var contents: (any SealedContents)?
    /// When loading has last failed, in nanoseconds.
    var failedAt: UInt64?
    var nested: [UInt32: WeakSeal] = [:]
    /// What has been told already.
    var told: Set<String> = []
  }

  /// What is broken is looked at again after this time: repairing it takes longer.
  private static let pause: UInt64 = 1_000_000_000
  /// So many findings are told one by one.
  private static let tellingLimit = 100

  init(
    _ path: String, in regions: ReadOnlyRegions, outer: (seal: ServedSeal, path: String)? = nil,
    load: @escaping @Sendable (FD) throws(Finding) -> any SealedContents
  ) {
    self.path = path
    self.regions = regions
    self.outer = outer
    self.load = load
  }

  /// Whether what it seals is in its place, and has not been taken away by the daemon.
  var isInstalled: Bool { outer?.seal.isInstalled ?? !retired.load(ordering: .acquiring) }

  func retire() { retired.store(true, ordering: .releasing) }

  /// What the seal says; nil if that can't be told.
  ///
  /// `root` is the sealed directory, if it is at hand. Who asks while another loads waits for that.
  func contents(in root: FD?) -> (any SealedContents)? {
    let (contents, finding, isNew) = state.withLock { state -> ((any SealedContents)?, Finding?, Bool) in
      if let contents = state.contents { return (contents, nil, false) }
      let now = monotonicNanoseconds()
      guard let root, state.failedAt.map({ now &- $0 > Self.pause }) ?? true else {
        return (nil, nil, false)
      }
      do throws(Finding) {
        let loaded = try load(root)
        state.contents = loaded
        return (loaded, nil, true)
      } catch {
        state.failedAt = now
        return (nil, error, false)
      }
    }
    if isNew {
      // Reading a seal takes many times the memory of its result, and the allocator would keep that memory.
      clx_return_free_memory()
    }
    if let finding { tellOnce(finding) }
    return contents
  }

  /// What has been loaded.
  var loadedContents: (any SealedContents)? { state.withLock { $0.contents } }

  /// The seal of a bundle in this one.
  func nested(_ seal: NestedSeal, at position: SealedPosition, path inner: String) -> ServedSeal? {
    guard case .sealed(let number) = position else { return nil }
    return state.withLock { state in
      if let known = state.nested[number]?.seal { return known }
      let made = ServedSeal("\(path)/\(inner)", in: regions, outer: (self, inner)) { (root) throws(Finding) in
        try BundleContents(in: root, installed: .nested(seal))
      }
      state.nested[number] = WeakSeal(made)
      return made
    }
  }

  /// Whether this is the seal of a sandboxed app, or of something in one.
  var isSandboxed: Bool { outer?.seal.isSandboxed ?? loadedContents?.isSandboxed ?? false }

  // MARK: Telling

  /// Tells of something that has just been found.
  func tell(_ finding: Finding) {
    guard let outer else { return regions.tell("/\(path): \(finding.message)") }
    outer.seal.tell(finding.inside(outer.path))
  }

  /// Tells of something that is found whenever someone looks, but once.
  func tellOnce(_ finding: Finding) {
    let message = finding.message
    let (isNew, isLast) = state.withLock { state -> (Bool, Bool) in
      guard state.told.count < Self.tellingLimit, state.told.insert(message).inserted else {
        return (false, false)
      }
      return (true, state.told.count == Self.tellingLimit)
    }
    if isNew { tell(finding) }
    if isLast { regions.tell("/\(path): there are more problems; 'insula verify' shows all") }
  }
}

struct WeakSeal: Sendable {
  weak let seal: ServedSeal?
  init(_ seal: ServedSeal) { self.seal = seal }
}
