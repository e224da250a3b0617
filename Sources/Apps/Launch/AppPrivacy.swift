// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
package import Policy
internal import PropertyLists

/// For which of a user's private things an app may ask, and with which words.
package struct AppPrivacy: Equatable, Sendable {
  /// Its own words for each service, as the bundle has them: not fit to be shown.
  package let texts: [PrivacyService: String]
  /// What its signature says of files that are chosen for it.
  let chosenFiles: ChosenFiles
  /// Whether it was built before apps had to say why they ask.
  package let isOlderThanTexts: Bool
  /// Whether the media library is the whole Music folder: the store decides that for all apps.
  package var hasAllMusic = false

  package init() {
    texts = [:]
    chosenFiles = .unsaid
    isOlderThanTexts = false
  }

  init(_ info: BundleInfo, _ signed: PropertyList.Dictionary) throws(AppFailure) {
    var texts: [PrivacyService: String] = [:]
    for service in PrivacyService.allCases {
      for key in service.usageKeys.reversed() {
        let text = info.usageDescriptions.first { $0.key == key }?.text
        if let text, !text.isEmpty { texts[service] = text.beginning(Self.longestText) }
      }
    }
    self.texts = texts
    chosenFiles = try ChosenFiles(signed)
    isOlderThanTexts = Self.isOlder(info.list["DTSDKName"]?.string)
  }

  /// More of a text is not kept.
  private static let longestText = 1000

  /// Whether it can ask at all: for folders and volumes, only if its users choose files for it.
  package func mayAsk(for service: PrivacyService) -> Bool {
    !service.isForChoosers || chosenFiles != .unsaid
  }

  /// Whether it may change what is chosen for it.
  var writesChosenFiles: Bool { chosenFiles == .readWrite }

  /// Whether it was built with the tools of a system that did not know the keys: iOS before 10, macOS before
  /// 10.14.
  static func isOlder(_ sdk: String?) -> Bool {
    guard let sdk else { return false }
    let first: [(name: String, version: [UInt16])] = [("iphoneos", [10]), ("macosx", [10, 14])]
    for (name, version) in first where sdk.hasPrefix(name) {
      let parts = sdk.dropFirst(name.count).split(separator: ".")
      let numbers = parts.compactMap { UInt16($0) }
      guard !numbers.isEmpty, numbers.count == parts.count else { return false }
      return numbers.lexicographicallyPrecedes(version)
    }
    return false
  }
}

extension AppLaunch {
  /// The services for which it may ask: those whose place it has not got by an entitlement.
  package var services: [PrivacyService] {
    let own = places.filter(\.isSubtree)
    return PrivacyService.allCases.filter { service in
      let place = place(without: service).path
      return privacy.mayAsk(for: service)
        && !own.contains {
          place.starts(with: $0.path) && (service.isAboutFiles || $0.reach.contains(.write))
        }
    }
  }

  /// What it has of a service without its user's consent.
  package func place(without service: PrivacyService) -> ScopePlace { service.withoutConsent(home: home) }

  /// What it has of a service with its user's consent.
  package func places(with service: PrivacyService) -> [ScopePlace] {
    service.withConsent(
      home: home, writesChosenFiles: privacy.writesChosenFiles, allMusic: privacy.hasAllMusic)
  }
}
