// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Volume

/// What a worker does for a while after it has taken over from one that died.
extension Server {
  /// A change of names that a former worker's thread makes late is told to no kernel.
  func forgetNamesOfFormerWorkers() throws(Errno) {
    guard FormerWorkers.areThere else { return }
    let volume = volume
    let thread = try JoinableThread(name: "former-workers") {
      FormerWorkers.awaitEnds()
      volume.forgetNames()
    }
    thread.detach()
  }

  /// Finds out, while others are served, which nodes that another worker has left nobody will forget.
  func askAboutLeftNodes(of views: [View]) throws(Errno) {
    let (left, ended) = (views.map(LeftNodes.init), ended)
    let thread = try JoinableThread(name: "left-nodes") {
      var milliseconds = LeftNodes.milliseconds
      while (try? ended.wakeup.fd.waitUntilReadable(milliseconds: milliseconds)) == false {
        let isMore = left.reduce(false) { $1.ask() || $0 }
        milliseconds = isMore ? LeftNodes.milliseconds : 60_000
      }
    }
    thread.detach()
  }
}
