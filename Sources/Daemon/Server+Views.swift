// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Fuse
internal import LinuxIO
internal import Policy
internal import Volume

/// Who is about to run an app.
struct LaunchedBy {
  let user: UInt32
  let group: UInt32
  let pid: Int32
  let process: SharedFD
  /// The view that they are about to have, in their budget.
  let share: BudgetShare
}

extension Server {
  /// Serves the view of an app: over a connection of the caller's own, or one that is made here; then its
  /// mount comes back.
  func serve(
    _ launch: AppLaunch, _ view: View, by caller: LaunchedBy, over theirs: SharedFD?
  ) throws(Errno) -> SharedFD? {
    do throws(Errno) {
      return try begin(launch, view, by: caller, over: theirs)
    } catch {
      // What its kernel would have said at the end.
      view.ended()
      throw error
    }
  }

  private func begin(
    _ launch: AppLaunch, _ view: View, by caller: LaunchedBy, over theirs: SharedFD?
  ) throws(Errno) -> SharedFD? {
    if let theirs {
      let copy = try theirs.use { (fd) throws(Errno) in try fd.duplicated() }
      try serve(launch, view, by: caller, connection: copy)
      return nil
    }
    var limits: DetachedMount.Limits = [.noDevices, .noSetUserID]
    if !launch.entitlements.runsWhatItWrites { limits.insert(.noPrograms) }
    if options.readOnly { limits.insert(.readOnly) }
    let made = try Mount.detached(for: caller.user, caller.group, source: "insula", limits)
    let mount = made.mount
    try serve(launch, view, by: caller, connection: made.takeConnection())
    return mount
  }

  private func serve(
    _ launch: AppLaunch, _ view: View, by caller: LaunchedBy, connection: consuming OwnedFD
  ) throws(Errno) {
    var settings = ConnectionSettings()
    settings.passthrough = options.passthrough && isSystem
    settings.localLocks = options.localLocks
    // Elsewhere files are opened so where a map that two views write to must not be had.
    settings.sharesDirectMaps = isSystem
    let session = try Session(view, over: connection, settings: settings)
    let number = views.number()
    views.add(
      RunningView(number, launch, user: caller.user, pid: caller.pid, caller.process, view), caller.share)
    do throws(Errno) {
      try pool.add(session) { [views] in views.remove(number) }
    } catch {
      views.remove(number)
      throw error
    }
    // What the kernel has looked up before that, it would forget at once.
    for _ in 0..<400 {
      if view.waitUntilStarted(milliseconds: 50) { return }
      // What came along was never mounted, or is not any more.
      guard views.has(number) else { throw .ENODEV }
    }
    throw .EIO
  }
}
