// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy

// Files that are open for writing, as far as other views are concerned.
//
// A kernel sees what is written through its own view and forgets sizes and times by itself. Of the others
// none may remember any while the file is open for writing, nor as long as a memory map may outlive that.
// They learn it before the open is answered, and whoever opens a file there looks here.

extension View {
  /// Whether a file is open for writing, or may be mapped so, through another view.
  func writingElsewhere(of file: ObjectNumber) -> WritingUse {
    guard volume.views.areSeveral else { return .none }
    let use = volume.known.use(of: file, besides: number)
    guard use != .open, let asked = volume.views.asked(besides: number) else { return use }
    let its = asked.nodes.with(file) { _, node -> WritingUse in
      node.writers > 0 ? .open : node.flags.contains(.mayBeMapped) ? .perhapsMapped : .none
    }
    return its.flatMap { $0 == .none ? nil : $0 } ?? use
  }

  /// From the reply on, the file may be changed without a word to us, and may be mapped so that it is for
  /// long.
  func noteOpened(_ node: NodeID, _ access: OpenFile.Access) {
    guard access.writes else { return }
    let maps = access.allowsSharedMaps
    let noted = nodes.with(node) { node in
      node.writers += 1
      if maps { node.mappers += 1 }
      known?.opened(node.number)
      return (number: node.number, wasCached: maps && node.flags.remove(.attributesCached) != nil)
    }
    guard let noted else { return }
    // Our own kernel sees what is written by calls, but no store through a map.
    if noted.wasCached { connection?.attributesChanged(node) }
    others.contentsChanged(of: noted.number)
  }

  /// The reverse, when the file is released.
  func noteClosed(_ node: NodeID, _ file: OpenFile) {
    guard file.access.writes else { return }
    let maps = file.access.allowsSharedMaps
    // Without passthrough the kernel releases the file when the last map of it is gone.
    let mayBeMapped = maps && file.descriptor == nil
    _ = nodes.with(node) { node in
      node.writers -= node.writers > 0 ? 1 : 0
      if maps { node.mappers -= node.mappers > 0 ? 1 : 0 }
      if mayBeMapped { node.flags.insert(.mayBeMapped) }
      known?.closed(node.number, mayBeMapped: mayBeMapped)
    }
  }

  /// Whether the kernel may keep what it has of a file's pages, or of a directory's listing, from before this
  /// open.
  func mayKeepContents(of node: NodeID) -> Bool {
    nodes.with(node) { $0.flags.remove(.contentsChanged) == nil } ?? false
  }
}
