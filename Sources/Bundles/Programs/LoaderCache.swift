// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Where the machine's libraries are, as ldconfig(8) has noted it in /etc/ld.so.cache.
package struct LoaderCache: Sendable {
  /// What it may be long at most.
  package static let sizeLimit = 1 << 25

  private var paths: [String: [String]] = [:]

  /// One that knows none.
  package init() {}

  /// Reads it; what can't be read is not in it.
  package init(_ bytes: [UInt8]) {
    guard let start = Self.start(bytes) else { return }
    let count = Int(bytes.number(UInt32.self, at: start + 20) ?? 0)
    for index in 0..<min(count, bytes.count / 24) {
      let entry = start + 48 + index * 24
      guard let key = bytes.number(UInt32.self, at: entry + 4),
        let value = bytes.number(UInt32.self, at: entry + 8),
        let name = Self.text(bytes, start + Int(key)), let path = Self.text(bytes, start + Int(value)),
        path.begins(with: "/")
      else { continue }
      paths[name, default: []].append(path)
    }
  }

  /// The files of that name, those first that the loader would take first.
  package func paths(of name: String) -> [String] { paths[name] ?? [] }

  /// Where the list begins that has been there since glibc 2.2: after one that nobody reads, or at once.
  private static func start(_ bytes: [UInt8]) -> Int? {
    let magic = Array("glibc-ld.so.cache1.1".utf8)
    if bytes.starts(with: magic) { return 0 }
    guard bytes.starts(with: Array("ld.so-1.7.0".utf8)), let count = bytes.number(UInt32.self, at: 12) else {
      return nil
    }
    let start = (16 + Int(count) * 12 + 7) & ~7
    guard start < bytes.count, bytes[start...].starts(with: magic) else { return nil }
    return start
  }

  private static func text(_ bytes: [UInt8], _ start: Int) -> String? {
    guard start < bytes.count else { return nil }
    let text = bytes[start...].prefix(4096)
    guard let end = text.firstIndex(of: 0) else { return nil }
    return String(validating: text[..<end], as: UTF8.self)
  }
}
