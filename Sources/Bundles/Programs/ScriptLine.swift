// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// The first line of a script, which says by what it is run, as execve(2) reads it.
package struct ScriptLine: Equatable, Sendable {
  /// How much of a file the kernel looks at.
  package static let limit = 256

  /// The program's path.
  package let interpreter: String
  /// The one argument that the kernel makes of what follows; nil if nothing does.
  package let argument: String?

  /// Reads the beginning of a file; nil if it is no script.
  package init?(_ bytes: [UInt8]) {
    guard bytes.starts(with: Array("#!".utf8)) else { return nil }
    let line = bytes.dropFirst(2).prefix(Self.limit - 2).prefix { $0 != 0x0a && $0 != 0 }
    func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0d }
    let start = line.drop(while: isBlank)
    let path = start.prefix { !isBlank($0) }
    var rest = start.dropFirst(path.count).drop(while: isBlank)
    while let last = rest.last, isBlank(last) { rest.removeLast() }
    guard !path.isEmpty, let text = String(validating: path, as: UTF8.self) else { return nil }
    interpreter = text
    argument = rest.isEmpty ? nil : String(validating: rest, as: UTF8.self)
  }

  /// The name of the program that env(1) is to find, where that is what runs the script.
  package var wanted: String? {
    guard interpreter.ends(with: "/env"), let argument else { return nil }
    return argument.parts(between: " ").map(String.init).first {
      !$0.hasPrefix("-") && !$0.utf8.contains(0x3d)
    }
  }
}
