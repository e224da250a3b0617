// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Store

extension EventLog {
  /// What somebody may see of it: root and the daemon's owner all, everyone else what concerns themselves and
  /// the machine.
  ///
  /// What the additional user IDs of an account do concerns that account, but not the other way round: what
  /// runs under such an ID is often there to be kept apart from its owner.
  func answer(_ query: LogQuery, for caller: ControlCaller) -> ControlReply {
    guard caller.isPrivileged || query.user == nil || query.user == caller.uid else {
      return .failure(ControlFailure("only root may see what concerns other users", .EPERM))
    }
    var query = query
    if !caller.isPrivileged { query.user = caller.uid }
    return .log(page(query))
  }
}
