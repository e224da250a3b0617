// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Fuse
internal import LinuxIO
internal import Synchronization

// What the table knows of nodes that are in read-only regions.

extension NodeTable {
  /// What a seal says of a node's object; nil where there is none.
  func sealed(_ id: NodeID) -> SealedNode? {
    state.withLock { state in state.index(of: id).flatMap { state.sealed[$0] } }
  }

  /// Notes what a look at a file's bytes has said, unless it stands elsewhere by now.
  func note(_ verdict: (isGood: Bool, stamp: FileStamp), of id: NodeID, as looked: SealedNode) {
    state.withLock { state in
      guard let index = state.index(of: id), let known = state.sealed[index], known.seal === looked.seal,
        known.position == looked.position
      else { return }
      state.sealed[index]?.verdict = verdict
    }
  }

  /// The same object on a mount that leaves access times alone; all that is found in it by name is there too.
  func reopenedNoatime(_ object: consuming OwnedFD) throws(Errno) -> OwnedFD {
    guard let noatimeRoot else { return object }
    if handleRoot != nil, let handle = object.fd.handle() {
      return try openWithRoom { () throws(Errno) in try noatimeRoot.open(handle) }
    }
    return try PrivateMount.noatime(object.fd)
  }
}
