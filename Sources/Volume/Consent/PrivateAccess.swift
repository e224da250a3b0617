// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Fuse
internal import LinuxIO
package import Policy

/// An access of an app's to what takes its user's consent.
package struct PrivateAccess {
  /// The view through which the app asks.
  package let view: UInt32
  package let app: AppIdentifier
  package let user: UInt32
  /// The thread that asks, 0 if unknown.
  package let thread: Int32
  /// The directory that takes consent, by the names below the root of the tree.
  package let place: [[UInt8]]
  private let request: PostponableRequest
  private let asker: View

  fileprivate init(_ request: PostponableRequest, _ app: AppIdentifier, _ place: [[UInt8]], _ view: View) {
    self.view = view.number
    self.app = app
    user = request.caller.uid
    thread = request.caller.pid
    self.place = place
    self.request = request
    asker = view
  }

  /// Keeps the request for when somebody has decided; nil if it can't wait.
  package func keep() -> PostponedRequest? {
    try? request.keep(for: asker.payer(request.caller), in: asker.volume.budget)
  }
}

/// Whoever has people asked for their consent.
package protocol ConsentKeeper: AnyObject, Sendable {
  /// On the thread of the request: true if it was kept and will be answered, false if it is to be refused.
  func asks(_ access: PrivateAccess) -> Bool
}

extension View {
  package func postpone(_ request: PostponableRequest) -> Bool {
    if volume.spellings?.wants(request.caller.request) == true { return waitForSpellings(request) }
    // What another user does here, root, is not for this one to be asked about.
    guard let app, let keeper = volume.consents, audience.user.map({ $0 == request.caller.uid }) ?? true,
      let place = request.nodes.firstResult({ self.privatePlace(of: $0) })
    else { return false }
    return keeper.asks(PrivateAccess(request, app, place, self))
  }

  /// The path of a node, if it is a directory that takes consent; nil for any other.
  private func privatePlace(of node: NodeID) -> [[UInt8]]? {
    nodes.with(node) { node in scope.ask { $0.path(ofPrivate: node.position) } } ?? nil
  }
}
