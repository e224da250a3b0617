// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy
internal import PropertyLists
internal import Store

extension Console {
  /// Says of an app that was just installed what its signature opens that no sandbox can bound.
  ///
  /// By the bundle from which it was installed, as long as that is the one that was verified.
  func warn(aboutAccessOf app: InstalledApp, in directory: FD, named name: String) {
    guard let root = try? directory.reopened(O_RDONLY | O_DIRECTORY),
      let bundle = try? CodeBundle(in: root, name: name),
      let entitlements = try? bundle.entitlements(installed: app.seal),
      entitlements[DesktopEntitlements.prefix + "x11"]?.boolean == true
    else { return }
    note(
      "\(app.name.sanitized) has access to X11 (\(DesktopEntitlements.prefix)x11): while it runs, it can see "
        + "the windows of all programs on that display, read what is typed into them, and type into them; "
        + "'org.insula.desktop.wayland' gives an app windows without that")
  }
}
