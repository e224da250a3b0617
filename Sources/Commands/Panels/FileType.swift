// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// The types of files by which an app asks for one.
///
/// They are the base system's: what other apps have declared is not for the one that asks.
enum FileType {
  private static let table = TypeTable.base

  /// The extensions that stand for a type and for all that conform to it; nil for one that is not known here.
  static func extensions(of type: String) -> [String]? {
    if type.hasPrefix(".") { return [String(type.dropFirst()).lowercased()] }
    guard let known = table.type(named: type) else { return nil }
    return table.all.filter { table.conforms($0.identifier, to: known.identifier) }.flatMap(\.extensions)
  }

  /// Whether all files are meant: there are no types, or one of them is not known here, and then nobody could
  /// say which files are not of it.
  static func areAll(_ types: [String]) -> Bool {
    types.isEmpty || types.contains { all.contains($0.lowercased()) || !isKnown($0) }
  }

  /// The extensions of all of these.
  static func extensions(of types: [String]) -> [String] {
    var found: [String] = []
    for type in types.flatMap({ extensions(of: $0) ?? [] }) where !found.contains(type) { found.append(type) }
    return found
  }

  /// Whether a file is of one of the types, by its name.
  static func matches(_ name: String, _ types: [String]) -> Bool {
    if areAll(types) { return true }
    let own = NameExtension.of(name).flatMap { table.type(forExtension: $0, isFolder: false) }
    return types.contains { type in
      guard type.hasPrefix(".") else { return own.map { table.conforms($0.identifier, to: type) } ?? false }
      return name.lowercased().hasSuffix(type.lowercased()) && name.utf8.count > type.utf8.count
    }
  }

  private static func isKnown(_ type: String) -> Bool {
    type.hasPrefix(".") || table.type(named: type) != nil
  }

  private static let all = ["public.item", "public.content", "public.data"]
}
