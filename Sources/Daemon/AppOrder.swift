// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
package import Policy

/// What is to be done to the apps of a store: asked of a daemon, or done by the command itself where none
/// runs.
package struct AppOrder: Codable, Equatable, Sendable {
  package enum Action: String, Codable, Sendable {
    case install
    case update
    case uninstall
    /// Puts the directory that comes as a descriptor in the place of the system domain.
    case updateSystem
    case rollbackSystem
    /// Puts a copy that the caller has made into an app's Inbox.
    case deliver
    /// Puts a container that the caller has made of a package in the place of the one that there is.
    case replaceData
  }

  package let action: Action
  /// The name that the bundle is to have, for ``Action/install`` and ``Action/update``; the bundle comes as a
  /// descriptor.
  ///
  /// For ``Action/updateSystem`` what the directory is called, for messages.
  package var bundle: String?
  /// Which app, for ``Action/uninstall``.
  package var identifier: AppIdentifier?
  /// For ``Action/deliver``.
  package var delivery: Delivery?
  /// For ``Action/replaceData``.
  package var newData: NewData?
  /// Whose; nil for everyone's.
  package var home: String?
  package var allowsDowngrade = false
  package var keepsData = false

  package init(_ action: Action, home: String?) {
    self.action = action
    self.home = home
  }

  /// An order to deliver something.
  package init(_ delivery: Delivery) {
    self.init(.deliver, home: delivery.home)
    self.delivery = delivery
  }

  /// An order to exchange a container.
  package init(_ newData: NewData) {
    self.init(.replaceData, home: newData.home)
    self.newData = newData
  }

  var domain: AppDomain { home.map(AppDomain.user) ?? .everyone }
}
