// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The services that the machine asks for accounts, as `nsswitch.conf(5)` has them.
///
/// A directory server that is away is answered for by the others: they say that there is no such account.
package struct AccountServices: Equatable, Sendable {
  package let names: [String]

  /// Those that know all that they will ever know without asking another machine.
  private static let local: Set<String> = [
    "files", "compat", "db", "altfiles", "extrausers", "systemd", "mymachines",
  ]
  private static let path = "/etc/nsswitch.conf"

  /// Whether none of them may be away.
  package var areLocal: Bool { names.allSatisfy(Self.local.contains) }

  package static var configured: AccountServices {
    // Without a configuration the C library asks for files alone.
    AccountServices(FD.text(of: path, limit: 1 << 20) ?? "")
  }

  /// Reads a configuration.
  package init(_ text: String) {
    var names: [String] = []
    for line in text.parts(between: "\n") {
      let rule = line.parts(between: "#", keepingEmpty: true).first ?? ""
      let parts = rule.parts(between: ":", max: 1)
      let base = parts.first?.split(whereSeparator: \.isWhitespace).first
      guard parts.count == 2, base == "passwd" || base == "passwd_compat" else { continue }
      // What is to be done with an answer is in brackets.
      var isAction = false
      for word in parts[1].split(whereSeparator: \.isWhitespace) {
        if word.hasPrefix("[") { isAction = true }
        if !isAction { names.append(String(word)) }
        if word.hasSuffix("]") { isAction = false }
      }
    }
    self.names = names
  }
}
