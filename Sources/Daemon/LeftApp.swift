// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import JSON
internal import LinuxIO
internal import Policy
internal import Store
internal import Volume

/// Which of the installed copies of an app runs, and what it was installed as: a user may have a copy beside
/// everyone's, of another version and of another root.
struct RunningCopy: Codable, Equatable {
  /// Whose copy it is; nil for everyone's.
  let owner: UInt32?
  let path: [UInt8]
  let seal: [UInt8]
  let team: Team

  init(_ app: InstalledApp) {
    owner = app.user
    path = Array(app.path.utf8)
    seal = app.seal
    team = app.signer
  }
}

/// What the next worker is to know of an app that runs; the rest is in the registry.
struct KeptLaunch: Codable {
  let identifier: String
  let copy: RunningCopy
  let user: UInt32
  /// The name of the home in which it has its containers; earlier versions say nothing of it.
  let home: String?
  let pid: Int32
  let since: Int64

  init(_ launch: AppLaunch, by caller: LaunchedBy) {
    identifier = launch.app.identifier.text
    copy = RunningCopy(launch.app)
    user = caller.user
    home = launch.home
    pid = caller.pid
    since = Int64(time(nil))
  }

  var encoded: [UInt8] { (try? JSONText.encode(self)) ?? [] }
}

/// An app that runs, as another worker has left it.
struct LeftApp {
  let launch: KeptLaunch
  let memory: SharedMemory
  let process: SharedFD
  let connection: FD
  /// The app's socket, if it has one.
  let listener: FD?

  /// Nil if anything of it is lost: then the app can't go on.
  init?(_ view: UInt32, in kept: KeptState) {
    guard let connection = kept.descriptor(.connection, view: view),
      let process = kept.descriptor(.appProcess, view: view),
      let (bytes, memory) = kept.data(.appLaunch, view: view),
      let launch = try? JSONText.decode(KeptLaunch.self, from: bytes)
    else { return nil }
    self.launch = launch
    self.memory = memory
    self.process = SharedFD(OwnedFD(owning: process.raw))
    self.connection = connection
    listener = kept.descriptor(.appListener, view: view)
  }

  /// Ends the app, which has no view any more; not if its process is another user's by now.
  func end() {
    try? ClientProcess(user: launch.user, pid: launch.pid, process).send(SIGKILL)
  }
}

/// An app that can go on.
struct AppTakeover {
  let launch: AppLaunch
  let left: LeftApp
  let view: View
  /// What the kernel sent its first worker first.
  let firstMessage: [UInt8]
  let share: BudgetShare
  let hold: ContainerHold?
}
