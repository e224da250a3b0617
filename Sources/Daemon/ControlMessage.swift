// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
package import Store

// What the commands and a running daemon say to each other: one line of JSON each way.

/// What a command asks of a daemon.
package struct ControlRequest: Codable, Equatable, Sendable {
  /// What the daemon can be asked for.
  package enum Verb: String, Codable, Sendable {
    /// Who are you, and what have you counted? Everyone may ask.
    case status
    /// Take the mount away and end.
    case unmount
    /// Do something to the apps: ``order`` says what. Everyone may ask; what they may have done is judged
    /// there.
    case order
    /// Which apps are there? Everyone may ask about their own and the machine's.
    case apps
    /// What is to be known of one?
    case app
    /// Where does one have its things? What is missing of its containers is made.
    case path
    /// Let an app have something of the user's, or take it back: ``grant`` says what.
    case grant
    /// What have apps been granted? In parts: ``after`` says where to go on. Root sees all.
    case grants
    /// Let one run: its view comes back, or is served over the connection that comes along.
    case run
    /// What runs? Root sees all.
    case running
    /// End one that runs, or send it ``signal``.
    case end
    /// Take in a descriptor, which belongs to the next request of this connection.
    case pass
  }

  package let verb: Verb
  /// For ``Verb/unmount``: detach now, end when the last user has gone.
  package var lazily: Bool?
  /// For ``Verb/order``.
  package var order: AppOrder?
  /// Which app.
  package var identifier: String?
  /// For ``Verb/path``: the word for the place.
  package var place: String?
  /// For ``Verb/grant``.
  package var grant: GrantOrder?
  /// For ``Verb/grants``: the number of the last one that is known already.
  package var after: Int64?
  /// For which user; root may leave that open, and for everyone else it is themselves.
  package var user: UInt32?
  /// For ``Verb/end``: only this, and no waiting.
  package var signal: Int32?

  package init(_ verb: Verb, lazily: Bool? = nil) {
    self.verb = verb
    self.lazily = lazily
  }
}

/// What the daemon answers.
package struct ControlReply: Codable, Equatable, Sendable {
  package let ok: Bool
  /// Why not, as a number, where it was the kernel that refused.
  package var errno: Int32?
  /// Why not, in words.
  package var message: String?
  package var status: DaemonStatus?
  /// Not the answer yet, but how far it is.
  package var progress: ControlProgress?
  /// The app that is there now, and the one that was there before.
  package var app: InstalledApp?
  package var before: InstalledApp?
  /// What stays of the containers that went, because it is not their owner's or a flag protects it.
  package var left: [LeftBehind]?
  /// The versions of the system domain that there are now.
  package var system: SystemVersions?
  /// The first thing that is wrong with a bundle, by the name of its kind.
  package var finding: String?
  /// For ``ControlRequest/Verb/apps`` and ``ControlRequest/Verb/app``; their paths begin at the root of the
  /// tree.
  package var apps: [AppDescription]?
  /// For ``ControlRequest/Verb/path``, and where something was delivered: below the root of the tree.
  package var path: String?
  /// For ``ControlRequest/Verb/grant`` and ``ControlRequest/Verb/grants``.
  package var grants: [GrantedPlace]?
  /// There are more: what to ask for ``ControlRequest/after``.
  package var next: Int64?
  /// For ``ControlRequest/Verb/run``.
  package var launch: LaunchPlan?
  /// For ``ControlRequest/Verb/running`` and ``ControlRequest/Verb/end``; where a mount stays, what keeps it.
  package var running: [RunningApp]?
  /// For ``ControlRequest/Verb/pass``: not the answer yet, but the moment to pass it on.
  package var awaitsDescriptor: Bool?
  /// What kind of failure it was, so that commands end with the same code with a daemon and without.
  package var failure: String?

  package static let done = ControlReply(ok: true)
  /// The ``failure`` of one who must wait until others of the same user have been served.
  package static let crowded = "crowded"

  package init(
    ok: Bool, errno: Int32? = nil, message: String? = nil, status: DaemonStatus? = nil,
    progress: ControlProgress? = nil
  ) {
    self.progress = progress
    self.ok = ok
    self.errno = errno
    self.message = message
    self.status = status
  }
}

/// How far something is that takes its time.
package struct ControlProgress: Codable, Equatable, Sendable {
  /// What is being done, in a word for people.
  package let phase: String
  package let done: UInt64
  package let total: UInt64

  package init(phase: String, done: UInt64, total: UInt64) {
    self.phase = phase
    self.done = done
    self.total = total
  }
}

/// How a daemon describes itself.
package struct DaemonStatus: Codable, Equatable, Sendable {
  package let pid: Int32
  package let store: String
  package let uuid: String
  package let mode: String
  package let mountPoint: String
  /// Which directory the store is; earlier daemons don't say that, nor the next.
  package var identity: StoreIdentity?
  /// The device number of the mount, as in `/proc/self/mountinfo`.
  package var mountDevice: String?
  /// The server's report, name by name, so that a new count needs no new protocol.
  package let counts: [String: JSONValue]

  package init(
    pid: Int32, store: String, uuid: String, mode: String, mountPoint: String, counts: [String: JSONValue]
  ) {
    self.pid = pid
    self.store = store
    self.uuid = uuid
    self.mode = mode
    self.mountPoint = mountPoint
    self.counts = counts
  }
}
