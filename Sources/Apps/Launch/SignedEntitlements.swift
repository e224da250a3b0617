// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import PropertyLists

// What an entitlement may be, in the dictionary that was signed.

extension PropertyList.Dictionary {
  /// The elements that a list may have: each may be a directory in every home.
  private static var mostStrings: Int { 100 }

  /// Whether an entitlement is there and true.
  func grants(_ key: String) throws(AppFailure) -> Bool {
    guard let value = self[key] else { return false }
    guard case .boolean(let isSet) = value else {
      throw .badEntitlement(key: key, reason: "it is not a boolean")
    }
    return isSet
  }

  /// What an entitlement lists; nil if it is not there.
  func strings(_ key: String) throws(AppFailure) -> [String]? {
    guard let value = self[key] else { return nil }
    guard let list = value.array else { throw .badEntitlement(key: key, reason: "it is not an array") }
    guard list.count <= Self.mostStrings else {
      throw .badEntitlement(key: key, reason: "it has more than \(Self.mostStrings) elements")
    }
    var strings: [String] = []
    for item in list {
      guard let text = item.string else {
        throw .badEntitlement(key: key, reason: "an element is not a string")
      }
      strings.append(text)
    }
    return strings
  }
}
