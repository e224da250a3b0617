// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
package import LinuxIO

/// The caller of a control request, as the kernel recorded it at connect (SO_PEERCRED).
package struct ControlCaller: Equatable, Sendable {
  package let pid: Int32
  package let uid: UInt32
  package let gid: UInt32
  /// The account whose budget is charged: the user, or the account that was given this ID.
  package let account: UInt32
  /// Whether the process may have dropped supplementary groups, perhaps to evade deny entries.
  package let mayHaveLeftGroups: Bool

  /// The process at the other end of a socket.
  init(of socket: FD) throws(Errno) {
    let caller = try LocalSocket.peer(of: socket)
    pid = caller.pid
    uid = caller.uid
    gid = caller.gid
    account = Payer(user: caller.uid).user
    mayHaveLeftGroups = LinuxIO.mayHaveLeftGroups(pid)
  }

  /// Whether it is root, or the user the daemon runs as.
  var isPrivileged: Bool { uid == 0 || uid == ProcessID.user }
}

/// A request as it arrived.
package struct ControlCall: Sendable {
  package let request: ControlRequest
  package let caller: ControlCaller
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
  /// It is done by a job on another thread.
  case job(ControlQueue, ControlJob)
  /// There is no answer yet. `until` gives it as soon as there is one: it is asked at once, and again
  /// whenever something has changed (``ControlServer/poke(callersOf:)``), on the server's thread.
  case waits(until: @Sendable () -> ControlReply?)

  package static func refusal(_ message: String, _ errno: Errno = .EPERM) -> ControlAnswer {
    .reply(.failure(ControlFailure(message, errno)))
  }
}

/// The queues of a user's jobs: each queue runs one job at a time.
package enum ControlQueue: Sendable {
  /// Changes of what is installed.
  case changes
  /// What is thrown away, which takes its time.
  case purges
  /// What apps are granted, which may lie on a volume that does not answer.
  case grants
  /// What is taken back of apps, and what people decide about them.
  case decisions
  /// Apps that are to run.
  case launches
  /// Documents that apps are told of.
  case documents
  /// Apps that are to end, and the mount.
  case endings
  /// Volumes that come and go.
  case volumes
  /// Queries that read the store.
  case queries
  /// Those that walk through all that apps have, which takes its time.
  case storage
  /// Descriptors that are passed on.
  case passing
}

/// A job: it reports its progress, and returns the reply.
package typealias ControlJob = @Sendable (_ reporter: ControlReporter) -> ControlReply

extension ControlCall {
  /// The caller's identity, with the groups that it had at connect.
  ///
  /// For jobs only: in a user namespace anybody can have tens of thousands of groups, and reading them takes
  /// as long as a hundred replies.
  func callerIdentity() -> CallerIdentity {
    let groups = try? LocalSocket.peerGroups(of: connection.fd)
    return CallerIdentity(
      uid: caller.uid, gid: caller.gid, groups: groups ?? [],
      mayHaveLeftGroups: caller.mayHaveLeftGroups || groups == nil)
  }
}
