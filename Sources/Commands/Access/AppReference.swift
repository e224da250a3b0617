// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Apps
internal import Policy

/// What a person calls an app: its identifier, or the name that it is shown by.
///
/// Anyone may give an app any name, that of another app too. So an identifier comes before every name, what
/// has the form of one (`com.example.editor`) is never a name, and a name that two apps have means neither.
struct AppReference: Equatable {
  let text: String

  /// Where names are not asked for: an identifier, or a word that only an identifier could be.
  var fixedIdentifier: AppIdentifier? { text.contains(".") ? AppIdentifier(text) : nil }

  /// Nil for what is neither a name nor an identifier.
  init?(_ text: String) {
    guard !text.isEmpty, !text.hasPrefix("-"), !text.utf8.contains(UInt8(ascii: "/")), text.sanitized == text
    else { return nil }
    self.text = text
  }

  /// Who is meant among the apps that there are.
  func identifier(among apps: [AppDescription]) throws(CommandFailure) -> AppIdentifier {
    try identifier(among: apps.map { ($0.identifier, $0.name) })
  }

  /// The same where no more is known of them.
  func identifier(
    among apps: [(identifier: String, name: String)]
  ) throws(CommandFailure) -> AppIdentifier {
    let own = AppIdentifier(text)
    if let own, apps.contains(where: { $0.identifier.lowercased() == own.text.lowercased() }) { return own }
    // A name that a terminal would not show as it is could look like another one.
    let named = apps.filter { $0.name == $0.name.sanitized && $0.name.lowercased() == text.lowercased() }
    let found = Set(named.map { $0.identifier.lowercased() })
    if found.count > 1 {
      throw CommandFailure(
        .failed, "several apps are called '\(text)'; give the identifier of the one that you mean:",
        lines: Set(named.map(\.identifier)).inOrder(by: <).map { "  \($0)" })
    }
    if let app = named.first, let identifier = AppIdentifier(app.identifier) { return identifier }
    guard let own else {
      throw CommandFailure(.failed, "no app is called '\(text)'; 'insula apps' lists the apps")
    }
    return own
  }
}

extension StoreAccess {
  /// The identifier of the app that is meant, among those of a user.
  func identifier(of app: AppReference, for user: UInt32?) throws -> AppIdentifier {
    if let identifier = app.fixedIdentifier { return identifier }
    return try app.identifier(among: apps(for: user))
  }
}
