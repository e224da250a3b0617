// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO

extension PanelTree {
  /// What may follow what a person has typed.
  struct Completion: Equatable {
    /// What was typed, and as much more as is certain.
    let text: String
    /// Among what there is a choice; folders with a slash.
    let names: [String]
  }

  private static let mostNames = 20_000

  /// Completes the last name of a path; nil if nothing there begins like it.
  func complete(_ typed: String, _ request: PanelRequest) -> Completion? {
    if typed == "~" { return Completion(text: "~/", names: []) }
    let slash = typed.utf8.lastIndex(of: UInt8(ascii: "/"))
    let above = slash.map { String(typed[...$0]) } ?? ""
    let beginning = slash.map { String(typed[typed.utf8.index(after: $0)...]) } ?? typed
    let names = names(in: full(above), beginning, request)
    guard let first = names.first else { return nil }
    guard names.count > 1 else { return Completion(text: above + first, names: names) }
    var common = Array(first.unicodeScalars)
    for name in names.dropFirst() {
      common = Array(zip(common, name.unicodeScalars).prefix { $0 == $1 }.map(\.0))
    }
    var text = String.UnicodeScalarView()
    text.append(contentsOf: common)
    return Completion(text: above + String(text), names: names)
  }

  /// The names in a folder that begin so and lead to what the app wants.
  private func names(in folder: String, _ beginning: String, _ request: PanelRequest) -> [String] {
    guard let directory = try? FD.cwd.openFollowing(folder, O_RDONLY | O_DIRECTORY | O_NONBLOCK) else {
      return []
    }
    let start = Array(beginning.utf8)
    let entries = try? directory.fd.entries(atMost: Self.mostNames) { name, _ in
      name.buffer.starts(with: start) && (!start.isEmpty || name.buffer.first != UInt8(ascii: "."))
    }
    var names: [String] = []
    for entry in entries ?? [] {
      guard let name = String(validating: entry.name, as: UTF8.self) else { continue }
      if isFolder(name, entry.type, in: directory.fd) {
        names.append(name + "/")
      } else if request.kind != .folder, FileType.matches(name, request.types) {
        names.append(name)
      }
    }
    return names.inOrder(by: <)
  }

  private func isFolder(_ name: String, _ type: UInt8, in directory: FD) -> Bool {
    switch UInt32(type) {
    case UInt32(S_IFDIR >> 12): return true
    case UInt32(S_IFREG >> 12): return false
    default: break
    }
    // A link, which is not followed, or a filesystem that does not say.
    guard let target = try? directory.open(name, pathOnly), let status = try? target.fd.status()
    else { return false }
    return status.isDirectory
  }
}
