// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Policy

/// What an app is told about itself.
///
/// Paths are below the root of the tree.
package struct OwnApp: Codable, Equatable, Sendable {
  package let identifier: String
  package let name: String
  /// `CFBundleShortVersionString`, or the build where there is none.
  package let version: String
  /// `CFBundleVersion`.
  package let build: String
  package let team: String
  /// Whom it runs for.
  package let user: UInt32
  /// Where the tree is.
  package let root: String
  package let bundle: String
  package let executable: String
  /// The user's home, and what the app has as its own.
  package let home: String
  package let data: String
  package let groups: [String]
  package let clouds: [String]

  init(_ running: RunningView, root: String) {
    let launch = running.launch
    let app = AppDescription(launch.app)
    (identifier, name, version, build) = (app.identifier, app.name, app.version, app.build)
    (team, bundle, groups, clouds) = (app.team, app.path, app.groups, app.clouds)
    user = running.user
    self.root = root
    executable = launch.executable
    home = "Users/\(launch.home)"
    data = launch.data
  }
}
