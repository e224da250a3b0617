// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A service of xdg-desktop-portal, which asks the user where that is needed, by the name of its interface.
///
/// Those are missing that hand out paths of files (FileChooser, Documents, Screenshot), which don't exist in
/// a view, that take files away (Trash), or that start or control programs outside of the sandbox
/// (Background, DynamicLauncher, RemoteDesktop, InputCapture).
package enum Portal: String, Codable, CaseIterable, Sendable {
  case account = "Account"
  case camera = "Camera"
  case email = "Email"
  case inhibit = "Inhibit"
  case location = "Location"
  case memoryMonitor = "MemoryMonitor"
  case networkMonitor = "NetworkMonitor"
  case notification = "Notification"
  case openURI = "OpenURI"
  case powerProfileMonitor = "PowerProfileMonitor"
  case print = "Print"
  case proxyResolver = "ProxyResolver"
  case screenCast = "ScreenCast"
  case settings = "Settings"
}
