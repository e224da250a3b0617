// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
internal import Fuse
package import Policy
internal import Store

/// What a command must know to start an app whose view is served: the view's mount comes with it as a
/// descriptor, unless the command has mounted it itself.
///
/// Paths are below the root of the tree.
package struct LaunchPlan: Codable, Equatable, Sendable {
  package let identifier: String
  /// Where the whole tree is mounted, and the view is to be.
  package let mountPoint: String
  package let executable: String
  /// What the app has as its home.
  package let data: String
  package let hasNetwork: Bool
  /// Where what it runs may lie; nil if that may be anywhere.
  package let executablePlaces: [String]?
  /// What it may use of the desktop; nil if that is nothing.
  package let desktop: DesktopEntitlements?
  /// What its bundle says that it needs at most; earlier daemons say nothing of that.
  package let limits: ResourceLimits?
  /// Whether the view is to be read-only, which the one who mounts it sees to; earlier daemons don't say.
  package let isReadOnly: Bool?

  init(_ launch: AppLaunch, mountPoint: String, isReadOnly: Bool) {
    identifier = launch.app.identifier.text
    self.mountPoint = mountPoint
    executable = launch.executable
    data = launch.data
    hasNetwork = launch.entitlements.hasNetwork
    executablePlaces = launch.entitlements.runsWhatItWrites ? nil : launch.executablePlaces
    desktop = launch.entitlements.desktop.isEmpty ? nil : launch.entitlements.desktop
    limits = launch.limits
    self.isReadOnly = isReadOnly ? true : nil
  }
}

/// An app that runs, as `insula ps` shows it.
package struct RunningApp: Codable, Equatable, Sendable {
  package let identifier: String
  package let user: UInt32
  /// The process that has started it, and waits for its end.
  package let pid: Int32
  /// In seconds since 1970.
  package let since: Int64
  /// Where its bundle is, below the root of the tree.
  package let bundle: String
  /// How many requests have come through its view since the daemon's process serves that; earlier daemons
  /// don't count them.
  package let requests: UInt64?

  init(_ view: RunningView) {
    identifier = view.launch.app.identifier.text
    user = view.user
    pid = view.pid
    since = view.since
    bundle = view.launch.app.path
    requests = view.requests.total
  }
}
