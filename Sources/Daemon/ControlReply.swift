// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
package import Fuse
package import JSON
package import Policy
package import Store

/// What a daemon answers.
package enum ControlReply: Equatable, Sendable {
  /// It is done, and there is nothing to say of it.
  case done
  case failure(ControlFailure)
  case status(DaemonStatus)
  case installed(InstalledApp)
  /// `left` stays of the containers that went, because it is not their owner's or a flag protects it.
  case updated(before: InstalledApp, now: InstalledApp, left: [LeftBehind])
  /// An update that waits until its app runs no more, or did until it was given up.
  case waiting(WaitingUpdate)
  /// Without an app, what an earlier removal had left is gone.
  case uninstalled(InstalledApp?, left: [LeftBehind])
  /// What was thrown away, or would be.
  case purged(PurgeReport)
  /// Removed containers that there are, or that were restored or deleted.
  case removed(RemovedReport)
  /// How much room apps take.
  case storage(StorageReport)
  /// What an app may store.
  case space(AvailableSpace)
  /// A team is assigned to another root; to which it was before, if to any.
  case assigned(team: String, formerRoot: [UInt8]?)
  /// The versions of the system domain that there are now.
  case system(SystemVersions)
  /// Those that were asked for; their paths begin at the root of the tree.
  case apps([AppDescription])
  /// Where something is, or was delivered: below the root of the tree.
  case path(String)
  case grants(GrantPage)
  case launch(LaunchPlan)
  case backup(BackupPlan)
  /// What runs, or what ran until it was ended.
  case running([RunningApp])

  /// What a process tree has requested of the filesystem.
  case requests(RequestReport)

  /// The certificates of the roots that a store trusts, as one PEM text.
  case roots(String)

  /// What was refused and done.
  case log(LogPage)

  /// What an app is told about itself.
  case own(OwnApp)

  /// What was decided about apps and services.
  case consents([ConsentStatus])

  /// What apps say of types and documents.
  case documents(DocumentsPage)

  /// The volumes of a tree, or the one that has come or gone.
  case volumes([VolumeDescription])

  /// The computers of the network.
  case network(NetworkDescription)

  /// What was opened with an app that runs: paths below the root of the tree.
  case opened([String])

  /// What an app wanted to be told.
  case items(ItemPage)

  /// What an agent is to ask a person, or to read.
  case task(AgentTask)

  /// Why the daemon has ended the app, in a sentence for its user.
  case endedBecause(String)

  /// What comes of something that may fail.
  init(_ body: () throws(ControlFailure) -> ControlReply) {
    do throws(ControlFailure) { self = try body() } catch { self = .failure(error) }
  }
}

/// One line that a daemon sends.
package enum ControlMessage: Equatable, Sendable {
  /// Not the answer yet, but how far it is.
  case progress(InstallProgress)
  /// Not the answer yet, but the moment to pass on the descriptor that was announced.
  case awaitsDescriptor
  case reply(ControlReply)
}

extension ControlReply {
  /// Whether others of the same user must have been served first.
  package var isCrowded: Bool {
    if case .failure(let failure) = self { failure.cause == .crowded } else { false }
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

  /// The process that ends last; nil where that is the one that answers.
  package var keeper: Int32? {
    guard case .integer(let number)? = counts["keeper"], number > 0 else { return nil }
    return Int32(exactly: number)
  }

  /// Why files are served without apps; nil where they are not.
  package var appsUnknown: String? {
    guard case .string(let reason)? = counts["appsUnknown"] else { return nil }
    return reason
  }

  /// How many volumes are not there since they were not added on this machine.
  package var unconfirmedVolumes: Int {
    guard case .integer(let count)? = counts["unconfirmedVolumes"] else { return 0 }
    return Int(clamping: count)
  }

  /// What the kernel has requested, by its names.
  package var requestsByKind: [String: Int64] {
    guard case .object(let kinds)? = counts["requestsByKind"] else { return [:] }
    return kinds.compactMapValues { if case .integer(let count) = $0 { count } else { nil } }
  }

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
