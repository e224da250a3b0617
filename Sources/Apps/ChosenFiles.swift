// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
package import LinuxIO
internal import PropertyLists
package import Store

/// What an app's signature says of the files that its users choose for it.
package enum ChosenFiles: Equatable, Sendable {
  /// Nothing: it is for the user to say.
  case unsaid
  /// It reads them, and never gets more.
  case readOnly
  case readWrite

  private static let prefix = "com.apple.security.files.user-selected."

  init(_ signed: PropertyList.Dictionary) throws(AppFailure) {
    func has(_ access: String) throws(AppFailure) -> Bool {
      try signed.grants(Self.prefix + access)
    }
    let reads = try has("read-only")
    let writes = try has("read-write")
    self = writes ? .readWrite : reads ? .readOnly : .unsaid
  }

  /// Asks the signature of an installed app, which must be the one that was installed.
  package init(of app: InstalledApp, in tree: FD) throws(AppFailure) {
    let directory: OwnedFD
    do throws(Errno) {
      directory = try tree.openDirectory(at: app.path)
    } catch {
      throw .failed(doing: "open", path: "/\(app.path)", errno: error)
    }
    let signed: PropertyList.Dictionary
    do throws(Bundles.Finding) {
      signed = try CodeBundle(in: directory, name: app.bundleName).entitlements(installed: app.seal)
    } catch {
      throw .refused(bundle: app.bundleName, [error])
    }
    try self.init(signed)
  }
}
