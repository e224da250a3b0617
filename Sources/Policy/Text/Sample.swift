// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Some of many: how many there are, and the first of them.
package struct Sample: Sendable {
  package private(set) var count = 0
  package private(set) var first: [String] = []
  private static let maxNamed = 10

  package init() {}

  package mutating func add(_ text: @autoclosure () -> String) {
    count += 1
    if first.count < Self.maxNamed { first.append(text()) }
  }

  package var words: String {
    first.joined(separator: ", ") + (count > first.count ? " and \(count - first.count) more" : "")
  }
}
