// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
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

  package init(texts: [PrivacyService: String] = [:]) {
    self.texts = texts
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

  /// Whether its users choose files for it.
  package var isChooser: Bool { chosenFiles != .unsaid }

  /// Whether it has said why it asks for a service, has no need to, or is too old to have been told to.
  package func mayAsk(for service: PrivacyService) -> Bool {
    texts[service] != nil || !service.requiresUsageText || isOlderThanTexts
  }

  /// Whether it has not said why it asks, and may ask all the same because of its age.
  package func asksWithoutText(for service: PrivacyService) -> Bool {
    texts[service] == nil && service.requiresUsageText && isOlderThanTexts
  }

  /// Whether it may change what is chosen for it.
  var writesChosenFiles: Bool { chosenFiles == .readWrite }

  /// Whether it was built with the tools of a system that did not know the keys: iOS before 10, macOS before
  /// 10.14.
  static func isOlder(_ sdk: String?) -> Bool {
    guard let sdk else { return false }
    let first: [(name: String, version: [UInt16])] = [("iphoneos", [10]), ("macosx", [10, 14])]
    for (name, version) in first where sdk.hasPrefix(name) {
      let parts = sdk.dropFirst(name.count).parts(between: ".")
      let numbers = parts.compactMap { UInt16($0) }
      guard !numbers.isEmpty, numbers.count == parts.count else { return false }
      return numbers.lexicographicallyPrecedes(version)
    }
    return false
  }
}

extension AppLaunch {
  /// The services for which it may ask.
  package var services: [PrivacyService] { sandbox.services }

  /// What it has of a service without its user's consent.
  package func places(without service: PrivacyService) -> [ScopePlace] { sandbox.places(without: service) }

  /// What it has of a service with its user's consent.
  package func places(with service: PrivacyService) -> [ScopePlace] {
    sandbox.places(
      with: service, writesChosenFiles: privacy.writesChosenFiles, allMusic: privacy.hasAllMusic)
  }
}
