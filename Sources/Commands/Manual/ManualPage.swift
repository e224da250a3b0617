// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A page of the manual.
struct ManualPage: Sendable {
  let name: String
  let section: Int
  /// What the page is about, without a full stop.
  let about: String
  /// Writes what follows the line with the name.
  let write: @Sendable (inout Roff) -> Void

  /// As the file is called: `insula-mount.1`.
  var fileName: String { "\(name).\(section)" }

  /// As a command's page may be asked for: `mount`.
  var shortName: String { name.hasPrefix("insula-") ? String(name.dropFirst("insula-".count)) : name }

  /// When the texts of this version were last changed by more than a few words.
  private static let date = "2026-11-24"

  /// The page, as man(1) reads it.
  var roff: String {
    var roff = Roff(name: name, section: section, date: Self.date, version: Insula.version)
    roff.name(name, about: about)
    write(&roff)
    return roff.source
  }
}

/// All pages that the program carries; that on the semantics is made of a document.
enum ManualPages {
  static let all =
    [overview, configuration, store, mountHelper] + Insula.commands.map { page(for: $0.description) }

  /// The name of a command's page.
  static func name(of description: CommandDescription) -> String {
    "insula-" + String(description.name.map { $0 == " " ? "-" : $0 })
  }
}
