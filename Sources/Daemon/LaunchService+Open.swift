// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store

extension ControlRequest {
  /// Paths in as many parts as it takes for each to fit into a request; nil if one fits into none.
  package static func parts(ofOpened paths: [String]) -> [[String]]? {
    // Beside them a request has an identifier, which is short.
    let most = ControlLine.requestLimit - 1024
    var parts: [[String]] = []
    var room = 0
    for path in paths {
      let size = ControlLine.encode(path).count
      guard size <= most else { return nil }
      if size > room {
        parts.append([])
        room = most
      }
      parts[parts.count - 1].append(path)
      room -= size
    }
    return parts
  }
}

extension LaunchService {
  /// Tells an app that runs that its user has opened documents; ESRCH if none runs that takes them.
  ///
  /// It is the user's own app: the daemon tells nobody's app of anything for another user.
  func tell(
    _ identifier: AppIdentifier, ofOpened paths: [String], for caller: ControlCaller
  ) -> ControlAnswer {
    guard paths.allSatisfy(Self.isPlace) else {
      return .refusal("documents are named by their paths below the root of the tree", .EINVAL)
    }
    // The one that was started last is the one that the user sees.
    let running = server.views.all(user: caller.uid).last {
      $0.launch.app.identifier.isSame(as: identifier) && $0.opened.areAwaited
    }
    guard let running else { return .reply(.failure(Self.notWaiting(identifier))) }
    return .job(.documents) { [server] _ in
      let isTaken = running.opened.offer(paths) { server.appSockets.poke([.view(running.number)]) }
      return isTaken ? .done : .failure(Self.notWaiting(identifier))
    }
  }

  private static func notWaiting(_ identifier: AppIdentifier) -> ControlFailure {
    ControlFailure("\(identifier) does not wait for documents", .ESRCH)
  }

  /// The app makes a path of it that is to lead into the tree.
  private static func isPlace(_ path: String) -> Bool {
    !path.utf8.contains(0)
      && path.parts(between: "/", keepingEmpty: true).allSatisfy {
        !["", ".", ".."].contains($0)
      }
  }
}
