// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The MIME types of extensions, as shared-mime-info's file `globs2` has them.
package struct MIMEGlobs: Sendable {
  /// Where it is on a machine that has the package.
  package static let path = "/usr/share/mime/globs2"

  /// Of what weighs the same, the first.
  private var types: [String: (type: String, weight: Int)] = [:]

  package var count: Int { types.count }

  /// The extensions that have a type.
  package var extensions: [String] { Array(types.keys) }

  package subscript(nameExtension: String) -> String? { types[nameExtension]?.type }

  /// Nothing, where the package is not installed.
  package init() {}

  /// Reads the file's lines: `WEIGHT:TYPE:PATTERN[:FLAGS]`.
  ///
  /// Only patterns that say what the characters after the last period mean are taken (`*.png`; neither
  /// `*.tar.gz` nor `README*`), and none that is only for one case (`*.C`). What can't be read is passed
  /// over.
  package init(globs2 text: String) {
    for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
      let fields = line.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
      guard line.first != UInt8(ascii: "#"), (3...4).contains(fields.count),
        let weight = Int(Substring(fields[0])), fields.count == 3 || !fields[3].contains(UInt8(ascii: "c")),
        fields[2].starts(with: "*.".utf8),
        !fields[2].dropFirst().contains(where: { "*?[".utf8.contains($0) }),
        let name = NameExtension.declared(String(Substring(fields[2].dropFirst(2))))
      else { continue }
      if let known = types[name], known.weight >= weight { continue }
      types[name] = (String(Substring(fields[1])), weight)
    }
  }
}
