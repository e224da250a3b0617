// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Fuse
internal import LinuxIO
package import Policy

/// What somebody was refused by one of our rules.
package struct Refusal: Sendable {
  /// The app through whose view it was requested; nil for the whole tree.
  package let app: AppIdentifier?
  package let user: UInt32
  /// The calling thread, 0 if unknown.
  package let thread: Int32
  package let operation: RefusedOperation
  package let rule: RefusalRule
  /// The same for what is refused again and again.
  package let key: Int

  package init(
    app: AppIdentifier?, user: UInt32, thread: Int32, operation: RefusedOperation, rule: RefusalRule, key: Int
  ) {
    self.app = app
    self.user = user
    self.thread = thread
    self.operation = operation
    self.rule = rule
    self.key = key
  }
}

extension RefusalRule {
  init(_ note: RefusalNote, inApp: Bool) {
    self =
      switch note.denial {
      case .readOnly: Self.rule(ofRegion: note.zone)
      case .place: Self.rule(ofPlace: note, inApp: inApp)
      case .flags: .flags
      case .acl: .acl
      case .mode: .mode
      case .ownership: .owner
      case .sticky: .sticky
      case .appendOnly: .append
      case .boundary: .boundary
      case .sandbox: .sandbox
      case .consent: .consent
      }
  }

  /// In the root of the tree, only standard directories have names.
  private static func rule(ofRegion zone: Zone?) -> Self {
    guard let zone else { return .system }
    if zone.isReadOnlyRegion { return zone == .system ? .system : .app }
    return .standard
  }

  private static func rule(ofPlace note: RefusalNote, inApp: Bool) -> Self {
    if inApp, let reach = note.reach, !reach.contains(.write) {
      if reach.contains(.beside) { return .besideGrant }
      return reach.contains(.revocable) ? .readOnlyGrant : .view
    }
    guard let zone = note.zone else { return .place }
    if zone.isDelivery { return .inbox }
    if zone.isSkeleton { return .standard }
    return zone.isOfContainer ? .container : .place
  }
}

extension Zone {
  fileprivate var isOfContainer: Bool {
    switch self {
    case .containers, .groupContainers, .cloudContainers, .container, .containerData, .macContainerData,
      .groupContainer, .cloudContainer, .cloudDocuments, .containerFixture, .containerDocuments:
      true
    default: false
    }
  }
}

/// Whoever wants to know what is refused.
package protocol RefusalListener: AnyObject, Sendable {
  /// On the thread of the request, which waits: `path` is found only if it is asked for, and is nil where it
  /// can't be told.
  func refused(_ refusal: Refusal, path: () -> [UInt8]?)
}
