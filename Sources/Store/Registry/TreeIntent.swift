// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// What is about to be done to an installed app, noted before it begins: so that whoever comes next can end
/// what was stopped.
package struct TreeIntent: Codable, Equatable, Sendable {
  package enum Work: String, Codable, Sendable { case install, update, uninstall }

  package let work: Work
  /// The app as it will be; one that is to go, as it is.
  package let app: InstalledApp
  /// The app that is updated, as it is.
  package let before: InstalledApp?
  /// Whether the containers of an app that goes stay.
  package let keepsData: Bool
  /// The name of the copy of an update that has waited.
  package let waiting: String?

  package static func install(_ app: InstalledApp) -> TreeIntent {
    TreeIntent(work: .install, app: app, before: nil, keepsData: true)
  }

  package static func update(
    _ before: InstalledApp, to app: InstalledApp, waiting: String? = nil
  ) -> TreeIntent {
    TreeIntent(work: .update, app: app, before: before, keepsData: true, waiting: waiting)
  }

  package static func uninstall(_ app: InstalledApp, keepingData: Bool) -> TreeIntent {
    TreeIntent(work: .uninstall, app: app, before: nil, keepsData: keepingData)
  }

  private init(
    work: Work, app: InstalledApp, before: InstalledApp?, keepsData: Bool, waiting: String? = nil
  ) {
    self.work = work
    self.app = app
    self.before = before
    self.keepsData = keepsData
    self.waiting = waiting
  }

  /// Whether it is about that app, in any of its versions.
  package func isAbout(_ other: InstalledApp) -> Bool {
    app.user == other.user && app.identifier.isSame(as: other.identifier)
  }

  /// The paths that change; those that differ only in case are one.
  var paths: Set<ExactText> {
    Set(([app.path] + [before?.path].compactMap(\.self)).map { ExactText($0.lowercased()) })
  }
}

/// An intent that is in the registry.
package struct NotedIntent: Equatable, Sendable {
  package let number: Int64
  package let intent: TreeIntent
  /// Whether this process is at it.
  package let isLive: Bool
}
