// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization

/// What the next worker needs in order to speak to a view's kernel.
struct KeptSession: BitwiseCopyable {
  /// What the kernel sent first.
  var length: UInt32
  var message = InlineArray<32, UInt64>(repeating: 0)
  var canWithdraw: UInt8
}

// Taking over a view that another worker has left.

extension View {
  package func began(by message: [UInt8]) {
    defer { startedSignal.ring() }
    var kept = KeptSession(length: UInt32(message.count), canWithdraw: memory.withdraws ? 1 : 0)
    let isWhole = withUnsafeMutableBytes(of: &kept.message) { bytes in
      guard message.count <= bytes.count else { return false }
      bytes.copyBytes(from: message)
      return true
    }
    guard isWhole else { return }
    // Twice, since a view for which it is damaged is lost.
    session.withLock { session in for place in 0..<2 { session.set(place, kept) } }
  }

  /// What the kernel sent the first worker first; nil if that was not answered, or is lost.
  package var firstMessage: [UInt8]? {
    guard let predecessor else { return nil }
    return withUnsafeBytes(of: predecessor.message) { bytes in
      let length = Int(predecessor.length)
      return (1...bytes.count).contains(length) ? Array(bytes[..<length]) : nil
    }
  }

  package var served: ServedPlace? { ServedPlace(volume.served, view: number) }

  /// Takes over what another worker has left.
  func takeOver() {
    let scope = self.scope.value
    if scope.root.throughout == nil {
      let (places, unknown, isWhole) = volume.objects(with: scope, for: audience.user ?? 0)
      if !isWhole { hasLeftNames.store(true, ordering: .relaxed) }
      let named = positions(below: unknown, in: scope, besides: places)
      let known = places.merging(named) { place, _ in place }
      let all = known.merging(positionsElsewhere(in: scope)) { place, _ in place }
      nodes.relocate(in: scope, all, isWhole: isWhole)
    }
    countWhatIsOpen()
  }

  /// The positions of what the kernel knows so far below some directories, by the names that it has now.
  ///
  /// No directory is listed: its user may have put any number of names there, and nobody is served before.
  private func positions(
    below directories: [ObjectNumber: Int], in scope: Scope, besides known: [ObjectNumber: Position]
  ) -> [ObjectNumber: Position] {
    var found: [ObjectNumber: Position] = [:]
    for (id, number) in nodes.below(directories) where known[number] == nil {
      guard mayWalk(Self.stepsToName), volume.attached.queue(ofDevice: number.device) == nil,
        let object = try? nodes.referenceAnywhere(to: id, isNamed: false),
        let status = try? object.fd.status()
      else {
        // It may be what is private in another spelling. Whoever looks it up again finds it.
        if volume.settings.ignoresCase { found[number] = .nowhere }
        continue
      }
      // What has been removed has no name that could say anything.
      if status.st_nlink == 0 { continue }
      found[number] = position(of: object.fd, number, in: scope) ?? .nowhere
    }
    return found
  }

  /// Whether so many more steps may be made; if not, all names of this view are looked up again.
  func mayWalk(_ steps: Int) -> Bool {
    if volume.mayWalk(steps, for: audience.user ?? 0) { return true }
    hasLeftNames.store(true, ordering: .relaxed)
    return false
  }

  /// What it costs to ask the kernel for a name, in steps of a path.
  static var stepsToName: Int { 8 }

  /// Charges for what another worker has left open, and counts it.
  private func countWhatIsOpen() {
    for (_, file) in files.handles {
      volume.budget.charge(.openFiles, to: file.payer)
      volume.budget.charge(.descriptors, file.descriptors.count, to: file.payer)
      backings.reopened(file.node, file.backing)
      writers.reopened(file.node, file)
    }
    for (_, directory) in directories.handles {
      volume.budget.charge(.openDirectories, to: directory.payer)
      if directory.descriptor != nil { volume.budget.charge(.descriptors, to: directory.payer) }
    }
  }

  /// Takes back what another worker has registered and not noted, because it died in between.
  ///
  /// The kernel numbers what is registered one after another, so that is among the latest.
  func unregisterLeft(_ connection: any Connection) {
    guard connection.passthrough, let file = try? SharedMemory("insula-backing", size: 1),
      let next = try? connection.registerBacking(file.fd)
    else { return }
    let used = Set(files.all.compactMap { $0.backing?.id })
    let latest: Int32 = 8192
    for id in max(1, next - latest)...next where !used.contains(id) { connection.unregisterBacking(id) }
  }

  /// Closes what another worker has opened for a request that has been sent again: the kernel was not told.
  func releaseUnanswered(_ request: RequestID) {
    guard request.isResent else { return }
    for (handle, file) in files.handles where file.caller.request.number == request.number {
      release(file.node, handle: handle, flockOwner: nil)
    }
    for (handle, directory) in directories.handles where directory.request.number == request.number {
      releaseDirectory(directory.node, handle: handle)
    }
  }

  /// The descriptors that it has taken over.
  package var descriptorsTakenOver: [Int32] {
    nodes.descriptorsTakenOver + files.all.flatMap(\.descriptors).map(\.number)
      + directories.all.compactMap { $0.descriptor?.number }
  }
}

extension Volume {
  /// The objects that have places of their own in a scope; and the directories so far below which others may
  /// have some, by patterns or in other spellings.
  ///
  /// Not whole if its user has more than may be looked for. Those of the app itself come first.
  fileprivate func objects(
    with scope: Scope, for user: UInt32
  ) -> (found: [ObjectNumber: Position], unknown: [ObjectNumber: Int], isWhole: Bool) {
    var walk = PathWalk(self)
    // An app without its own container and bundle would have to be started again.
    var ownSteps = 1024
    var found: [ObjectNumber: Position] = [:]
    var unknown: [ObjectNumber: Int] = [:]
    for (path, position) in scope.namedPlaces {
      let first = path.firstIndex { ScopePlace.suffix(ofPattern: $0) != nil }
      ownSteps -= first ?? path.count
      guard ownSteps >= 0 || mayWalk(first ?? path.count, for: user) else { return (found, unknown, false) }
      let resolved = walk.resolve(Array(path[..<(first ?? path.count)]), for: user)
      if first == nil, let object = resolved.found {
        found[object.number] = position
      } else if settings.ignoresCase || resolved.found != nil,
        let directory = resolved.found?.number ?? resolved.steps.last?.directory
      {
        let depth = path.count - (resolved.found == nil ? resolved.steps.count - 1 : first ?? path.count)
        unknown[directory] = max(depth, unknown[directory] ?? 0)
      }
    }
    return (found, unknown, true)
  }

  /// Whether so many more steps of paths may be made for a user before anybody is served: a user may have
  /// many views, many grants deep in directories, and much that the kernel knows in each.
  func mayWalk(_ steps: Int, for user: UInt32) -> Bool {
    stepsWalked.withLock { walked in
      let (all, isTooMuch) = walked[user, default: 0].addingReportingOverflow(steps)
      guard !isTooMuch, all <= maxStepsWalked else { return false }
      walked[user] = all
      return true
    }
  }

  /// So many take some tenths of a second.
  private var maxStepsWalked: Int {
    #if DEBUG
      // For tests, which would have to make tens of thousands.
      if let text = getenv("INSULA_STEPS_WALKED"), let steps = Int(String(cString: text)) { return steps }
    #endif
    return 1 << 17
  }
}
