// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy

/// Which files are open for writing through one view, as far as other views are concerned.
///
/// A kernel sees what is written through its own view and forgets sizes and times by itself. The kernels of
/// other views may remember neither while the file is open for writing, nor as long as a memory map may
/// outlive that. They learn it before the open is answered, and whoever opens a file there looks here.
struct WriterNotes: Sendable {
  let volume: Volume
  let view: UInt32
  let nodes: NodeTable
  let kernel: KernelLink
  /// Where it is noted for the other views; nil for the view that is asked itself.
  let interest: ViewInterest?

  /// Whether a file is open for writing, or may be mapped so, through another view.
  func elsewhere(of file: ObjectNumber) -> WritingUse {
    guard volume.views.areSeveral else { return .none }
    let use = volume.interest.use(of: file, besides: view)
    guard use != .open, let asked = volume.views.unindexed(besides: view) else { return use }
    let its = asked.nodes.with(file) { _, node -> WritingUse in
      node.writers > 0 ? .open : node.flags.contains(.mayBeMapped) ? .perhapsMapped : .none
    }
    return its.flatMap { $0 == .none ? nil : $0 } ?? use
  }

  /// From the reply on, the file may be changed without a word to us, and may be mapped so that it is for
  /// long.
  func opened(_ node: NodeID, _ access: OpenFile.Access) {
    guard access.writes else { return }
    let maps = access.allowsSharedMaps
    let noted = nodes.with(node) { node in
      node.writers += 1
      if maps { node.mappers += 1 }
      interest?.opened(node.number)
      return (number: node.number, wasCached: maps && node.flags.remove(.attributesCached) != nil)
    }
    guard let noted else { return }
    // Our own kernel sees what is written by calls, but no store through a map.
    if noted.wasCached { kernel.connection?.attributesChanged(node) }
    PeerViews(volume: volume, number: view).contentsChanged(of: noted.number)
  }

  /// An open that another worker has answered.
  func reopened(_ node: NodeID, _ file: OpenFile) {
    guard file.access.writes else { return }
    let number = nodes.with(node) { node in
      node.writers += 1
      if file.access.allowsSharedMaps { node.mappers += 1 }
      interest?.opened(node.number)
      return node.number
    }
    if let number { volume.maps.reopened(number, by: view, file.maps) }
  }

  /// Whether another view may be storing in a file's own pages, by what was noted before this view opened it
  /// (``elsewhere(of:)``, with `perhapsMapped` only where nothing is mapped) and by what is noted now.
  private func isAlone(with file: ObjectNumber, since before: WritingUse) -> Bool {
    let now = elsewhere(of: file)
    return now == .none || now == .perhapsMapped && before == .perhapsMapped
  }

  /// What an open that has been noted (``opened(_:_:)``) can do by memory maps; `isPassedThrough` says that
  /// they have the file's own pages.
  func mapped(
    _ file: ObjectNumber, _ access: OpenFile.Access, isPassedThrough: Bool, isDirect: Bool,
    since before: WritingUse
  ) -> MapUse {
    guard access.allowsSharedMaps else { return .none }
    guard !isPassedThrough else {
      volume.maps.disown(file, besides: view)
      return .none
    }
    if isDirect, !kernel.sharesDirectMaps { return .none }
    return volume.maps.opened(file, by: view, canRefuse: !kernel.sharesDirectMaps) {
      isAlone(with: file, since: before)
    }
  }

  /// The file is mapped no more.
  func unmapped(_ file: ObjectNumber) { interest?.unmapped(file) }

  /// The reverse of ``opened(_:_:)``, when the file is released.
  func closed(_ node: NodeID, _ file: OpenFile) {
    guard file.access.writes else { return }
    let maps = file.access.allowsSharedMaps
    // Without passthrough the kernel releases the file when the last map of it is gone. A file that is passed
    // through may have a descriptor of ours besides.
    let mayBeMapped = maps && file.backing != nil
    let number = nodes.with(node) { node in
      node.writers -= node.writers > 0 ? 1 : 0
      if maps { node.mappers -= node.mappers > 0 ? 1 : 0 }
      if mayBeMapped { node.flags.insert(.mayBeMapped) }
      interest?.closed(node.number, mayBeMapped: mayBeMapped)
      return node.number
    }
    if file.maps != .none, let number { volume.maps.closed(number, by: view) }
  }
}
