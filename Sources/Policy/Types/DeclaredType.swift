// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A uniform type identifier and what is declared of it.
///
/// An object, since looking one up is to copy nothing.
package final class DeclaredType: Equatable, Sendable {
  /// As it is spelled; two that differ in case are one.
  package let identifier: String
  /// What it conforms to.
  package let parents: [String]
  /// In lower case, without periods.
  package let extensions: [String]
  /// The one that is given for a file first.
  package let mimeTypes: [String]
  /// What a person calls it ("PDF document"); empty where nobody has said.
  package let kind: String

  package init(
    _ identifier: String, parents: [String], extensions: [String] = [], mimeTypes: [String] = [],
    kind: String = ""
  ) {
    self.identifier = identifier
    self.parents = parents
    self.extensions = extensions
    self.mimeTypes = mimeTypes
    self.kind = kind
  }

  /// Reads the five fields of a line, in which blanks stand between the items of a list.
  convenience init?(fields: some Collection<Substring>) {
    let fields = Array(fields)
    guard fields.count == 5, !fields[0].isEmpty else { return nil }
    func list(_ index: Int) -> [String] { fields[index].parted(at: " ").map(String.init) }
    self.init(
      String(fields[0]), parents: list(1), extensions: list(2), mimeTypes: list(3), kind: String(fields[4]))
  }

  /// The line that ``init(fields:)`` reads.
  func line(separatedBy separator: String) -> String {
    let lists = [parents, extensions, mimeTypes].map { $0.joined(separator: " ") }
    return ([identifier] + lists + [kind]).joined(separator: separator)
  }

  package static func == (one: DeclaredType, other: DeclaredType) -> Bool {
    one.identifier == other.identifier && one.parents == other.parents
      && one.extensions == other.extensions && one.mimeTypes == other.mimeTypes && one.kind == other.kind
  }

  /// By what it is found: identifiers are compared without case.
  static func key(_ identifier: String) -> String { identifier.lowercased() }
}
