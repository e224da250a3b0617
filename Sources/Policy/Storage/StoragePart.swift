// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What an app takes room on the disk for.
package enum StoragePart: String, Codable, Sendable, CaseIterable {
  case bundle, documents, data, caches, tmp, groups, icloud
}

/// How much each part takes, in bytes.
package struct StorageSizes: Codable, Equatable, Sendable {
  private var bundle: Int64 = 0
  private var documents: Int64 = 0
  private var data: Int64 = 0
  private var caches: Int64 = 0
  private var tmp: Int64 = 0
  private var groups: Int64 = 0
  private var icloud: Int64 = 0

  package init() {}

  package subscript(part: StoragePart) -> Int64 { self[keyPath: Self.field(part)] }

  package mutating func add(_ bytes: Int64, to part: StoragePart) {
    let field = Self.field(part)
    self[keyPath: field] = Self.sum(self[keyPath: field], bytes)
  }

  package mutating func add(_ other: StorageSizes) {
    for part in StoragePart.allCases { add(other[part], to: part) }
  }

  package var total: Int64 { StoragePart.allCases.reduce(0) { Self.sum($0, self[$1]) } }

  /// The sizes may be made up: files with holes, filesystems that lie.
  private static func sum(_ one: Int64, _ other: Int64) -> Int64 {
    let sum = one.addingReportingOverflow(other)
    return sum.overflow ? .max : sum.partialValue
  }

  private static func field(_ part: StoragePart) -> WritableKeyPath<StorageSizes, Int64> {
    switch part {
    case .bundle: \.bundle
    case .documents: \.documents
    case .data: \.data
    case .caches: \.caches
    case .tmp: \.tmp
    case .groups: \.groups
    case .icloud: \.icloud
    }
  }
}
