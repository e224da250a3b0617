// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What other views and the daemon use of a view: what it knows, what its kernel remembers, and what its app
/// was granted.
final class PeerView: Sendable {
  let number: UInt32
  let volume: Volume
  let scope: ViewScope
  let nodes: NodeTable
  let memory: KernelMemory
  let granted: GrantedFiles
  let siblings: GrantedSiblings

  init(
    _ volume: Volume, number: UInt32, _ scope: ViewScope, _ nodes: NodeTable, _ memory: KernelMemory,
    _ granted: GrantedFiles, _ siblings: GrantedSiblings
  ) {
    self.volume = volume
    self.number = number
    self.scope = scope
    self.nodes = nodes
    self.memory = memory
    self.granted = granted
    self.siblings = siblings
  }
}
