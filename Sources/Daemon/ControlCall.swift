// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
package import LinuxIO

/// Who asks, as the kernel noted when they connected.
package struct ControlPeer: Equatable, Sendable {
  package let pid: Int32
  package let uid: UInt32
  package let gid: UInt32
  /// Whose share of what there is they have: themselves, or the account to which their id was given.
  package let account: UInt32
  /// Whether there may be others that they have given up.
  package let mayHaveLeftGroups: Bool

  /// Whoever is at the other end of a socket.
  init(of socket: FD) throws(Errno) {
    let peer = try LocalSocket.peer(of: socket)
    pid = peer.pid
    uid = peer.uid
    gid = peer.gid
    account = Payer(user: peer.uid).user
    mayHaveLeftGroups = LinuxIO.mayHaveLeftGroups(pid)
  }

  /// Whether it is root, or whoever the daemon is run by.
  var isMaster: Bool { uid == 0 || uid == ProcessID.user }
}

/// A request as it arrived.
package struct ControlCall: Sendable {
  package let request: ControlRequest
  package let peer: ControlPeer
  let connection: ControlConnection
  /// What the caller has opened and passed on, if anything.
  package let descriptor: SharedFD?
  /// The very process that has connected, where the request is about it.
  package var process: SharedFD?
}

/// What follows from a request.
package enum ControlAnswer: Sendable {
  /// It is answered.
  case reply(ControlReply)
  /// It takes its time, and is done on another thread.
  case job(ControlQueue = .orders, ControlJob)

  package static func refusal(_ message: String, _ errno: Errno = .EPERM) -> ControlAnswer {
    .reply(ControlReply(ok: false, errno: errno.code, message: message))
  }
}

/// What one user waits for: in each of these one thing after the other.
package enum ControlQueue: Sendable {
  /// Changes of what is installed.
  case orders
  /// What apps are granted, and what is taken back.
  case grants
  /// Apps that are to run.
  case launches
  /// Apps that are to end, and the mount.
  case endings
  /// What is to be told and takes a look at the store.
  case questions
  /// Descriptors that are passed on.
  case passing
}

/// Something that takes its time; it says how far it is, and ends with the answer.
package typealias ControlJob = @Sendable (_ caller: ControlReporter) -> ControlReply

extension ControlCall {
  /// Who asks, with the groups that they had when they connected.
  ///
  /// For jobs alone: anybody can have tens of thousands of groups, in a user namespace, and to read them
  /// takes the time of a hundred answers.
  func asker() -> Asker {
    let groups = try? LocalSocket.peerGroups(of: connection.fd)
    return Asker(
      uid: peer.uid, gid: peer.gid, groups: groups ?? [],
      mayHaveLeftGroups: peer.mayHaveLeftGroups || groups == nil)
  }
}
