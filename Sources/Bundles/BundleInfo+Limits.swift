// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import PropertyLists

extension BundleInfo {
  private static let key = "InsulaLimits"

  /// Reads InsulaLimits: what the app's author thinks that it needs at most.
  ///
  /// A limit that nobody understands would be none, so it is refused.
  static func limits(in list: PropertyList.Dictionary) throws(Finding) -> ResourceLimits {
    var limits = ResourceLimits()
    guard let value = list[key] else { return limits }
    guard let dictionary = value.dictionary else { throw refusal("\(key) is not a dictionary") }
    for entry in dictionary.entries {
      guard let kind = ResourceLimits.Kind(rawValue: entry.key) else {
        let known = ResourceLimits.Kind.allCases.map(\.rawValue).joined(separator: ", ")
        throw refusal("\(key) has the unknown key '\(entry.key.prefix(40))'; known are \(known)")
      }
      do throws(LimitRefusal) {
        switch entry.value {
        case .integer(let number): limits[kind] = try kind.checked(number)
        case .string(let text): limits[kind] = try kind.value(of: text)
        default: throw LimitRefusal(reason: "it is neither an integer nor a string")
        }
      } catch {
        throw refusal("\(key), \(kind.rawValue): \(error.reason)")
      }
    }
    return limits
  }

  static func refusal(_ detail: String) -> Finding { Finding(.badInfoPlist, detail: detail) }
}
