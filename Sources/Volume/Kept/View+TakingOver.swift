// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Fuse
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
      let places = volume.objects(with: scope, for: audience.user ?? 0)
      nodes.relocate(in: scope, places.merging(positionsElsewhere(in: scope)) { place, _ in place })
    }
    countWhatIsOpen()
  }

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
  /// The objects that have places of their own in a scope.
  fileprivate func objects(with scope: Scope, for user: UInt32) -> [ObjectNumber: Position] {
    var found: [ObjectNumber: Position] = [:]
    for (path, position) in scope.namedPlaces {
      if let suffix = path.last.flatMap(ScopePlace.suffix) {
        for object in objects(in: Array(path.dropLast()), endingIn: suffix) { found[object] = position }
      } else if let object = resolvedPath(along: path, for: user).found {
        found[object.number] = position
      }
    }
    return found
  }

  /// The objects in a directory whose names end so.
  private func objects(in path: [[UInt8]], endingIn suffix: ArraySlice<UInt8>) -> [ObjectNumber] {
    guard let directory = try? tree.openDirectory(at: path), let entries = try? directory.fd.entries() else {
      return []
    }
    let named = entries.filter {
      $0.name.count > suffix.count && $0.name.suffix(suffix.count).elementsEqual(suffix)
    }
    return named.compactMap { entry in
      try? entry.name.withName { (name) throws(Errno) in ObjectNumber(try directory.fd.status(of: name)) }
    }
  }
}
