// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Apps
internal import Policy

/// What a person calls an app: its identifier, or the name that it is shown by.
///
/// Anyone may give an app any name, that of another app too. So an identifier comes before every name, what
/// has the form of one (`com.example.editor`) is never a name, and a name that two apps have means neither.
/// An identifier without a dot could be a name, too: if it is another app's, it means neither, and
/// `id:editor` means the one that has it.
struct AppReference: Equatable {
  /// As it was given.
  let text: String
  /// What follows the mark of an identifier.
  private let marked: AppIdentifier?

  /// Where names are not asked for: an identifier, or a word that only an identifier could be.
  var fixedIdentifier: AppIdentifier? { marked ?? (text.contains(".") ? AppIdentifier(text) : nil) }

  private static let mark = "id:"

  /// Nil for what is neither a name nor an identifier.
  init?(_ text: String) {
    guard !text.isEmpty, !text.hasPrefix("-"), !text.utf8.contains(UInt8(ascii: "/")), text.sanitized == text
    else { return nil }
    self.text = text
    marked = text.hasPrefix(Self.mark) ? AppIdentifier(String(text.dropFirst(Self.mark.count))) : nil
  }

  /// Who is meant among the apps that there are.
  func identifier(among apps: [AppDescription]) throws(CommandFailure) -> AppIdentifier {
    try identifier(among: apps.map { ($0.identifier, $0.name) })
  }

  /// The same where no more is known of them.
  func identifier(
    among apps: [(identifier: String, name: String)]
  ) throws(CommandFailure) -> AppIdentifier {
    if let fixedIdentifier { return fixedIdentifier }
    let own = AppIdentifier(text)
    let isOwn = { (app: String) in app.lowercased() == own?.text.lowercased() }
    let hasOwn = apps.contains { isOwn($0.identifier) }
    // A name that a terminal would not show as it is could look like another one.
    let named = apps.filter { $0.name == $0.name.sanitized && $0.name.lowercased() == text.lowercased() }
    if let own, hasOwn {
      let others = Set(named.map(\.identifier).filter { !isOwn($0) })
      if others.isEmpty { return own }
      throw CommandFailure(
        .failed, "'\(text)' is the identifier of one app and the name of another; say which one you mean:",
        lines: Self.lines([own.text] + others.inOrder(by: <)))
    }
    let found = Set(named.map { $0.identifier.lowercased() })
    if found.count > 1 {
      throw CommandFailure(
        .failed, "several apps are called '\(text)'; give the identifier of the one that you mean:",
        lines: Self.lines(Set(named.map(\.identifier)).inOrder(by: <)))
    }
    if let app = named.first, let identifier = AppIdentifier(app.identifier) { return identifier }
    guard let own else {
      throw CommandFailure(.failed, "no app is called '\(text)'; 'insula apps' lists the apps")
    }
    return own
  }

  /// How an identifier is given where a name could be meant, too.
  static func word(of identifier: String) -> String {
    identifier.contains(".") ? identifier : mark + identifier
  }

  private static func lines(_ identifiers: [String]) -> [String] { identifiers.map { "  " + word(of: $0) } }
}

extension StoreAccess {
  /// The identifier of the app that is meant, among those of a user.
  func identifier(of app: AppReference, for user: UInt32?) throws -> AppIdentifier {
    if let identifier = app.fixedIdentifier { return identifier }
    return try app.identifier(among: apps(for: user))
  }
}
