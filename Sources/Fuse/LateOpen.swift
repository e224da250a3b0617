// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
package import LinuxIO

/// Lets a filesystem put off the reply to an open.
package struct LateOpen {
  private let node: NodeID
  private let request: fuse_req_t
  // A session outlives the calls that are made for its requests; who keeps the request keeps it too.
  private unowned(unsafe) let session: Session

  init(_ node: NodeID, _ request: fuse_req_t, _ session: Session) {
    self.node = node
    self.request = request
    self.session = session
  }

  /// From here on the reply belongs to the result.
  package func keep() -> KeptOpen { KeptOpen(node, request, session) }
}

/// An open whose reply is deferred.
///
/// Its owner sends one reply; no worker waits meanwhile.
///
/// It can't be interrupted, as opening a file on a slow disk can't: programs that get signals all the time,
/// as those that are written in Go, would see their opens fail.
package struct KeptOpen: Sendable {
  private let node: NodeID
  nonisolated(unsafe) private let request: fuse_req_t
  /// Keeps what libfuse knows of the request, also when its connection has ended meanwhile.
  private let session: Session

  fileprivate init(_ node: NodeID, _ request: fuse_req_t, _ session: Session) {
    self.node = node
    self.request = request
    self.session = session
  }

  /// Sends what was opened.
  package func send(_ opened: Opened) { Fuse.send(opened, of: node, request, session) }

  /// Sends the error instead.
  package func send(_ error: Errno) { fuse_reply_err(request, error.code) }
}
