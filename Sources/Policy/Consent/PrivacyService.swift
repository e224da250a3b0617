// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A kind of a user's data that apps get only with that user's consent; by a word that commands, logs and
/// registries have, the same in all versions.
package enum PrivacyService: String, Codable, CaseIterable, Sendable {
  case mediaLibrary = "media-library"
  case photos
  /// To put photos into the library without seeing what is there.
  case photosAdd = "photos-add"
  case contacts, calendars, reminders
  case desktop, documents, downloads
  case removableVolumes = "removable-volumes"
  case networkVolumes = "network-volumes"
  /// The documents that other apps have in their containers.
  case appData = "app-data"

  /// What a person calls it.
  package var title: String {
    switch self {
    case .mediaLibrary: "your media library"
    case .photos, .photosAdd: "your photos"
    case .contacts: "your contacts"
    case .calendars: "your calendars"
    case .reminders: "your reminders"
    case .desktop: "files in your Desktop folder"
    case .documents: "files in your Documents folder"
    case .downloads: "files in your Downloads folder"
    case .removableVolumes: "files on removable volumes"
    case .networkVolumes: "files on network volumes"
    case .appData: "documents of other apps"
    }
  }

  /// What an app wants to do with it.
  package var use: String { self == .photosAdd ? "add to \(title)" : "use \(title)" }

  /// The keys of Info.plist that hold the app's own words, the newest first.
  package var usageKeys: [String] {
    switch self {
    case .mediaLibrary: ["NSAppleMusicUsageDescription"]
    case .photos: ["NSPhotoLibraryUsageDescription"]
    case .photosAdd: ["NSPhotoLibraryAddUsageDescription"]
    case .contacts: ["NSContactsUsageDescription"]
    case .calendars: ["NSCalendarsFullAccessUsageDescription", "NSCalendarsUsageDescription"]
    case .reminders: ["NSRemindersFullAccessUsageDescription", "NSRemindersUsageDescription"]
    case .desktop: ["NSDesktopFolderUsageDescription"]
    case .documents: ["NSDocumentsFolderUsageDescription"]
    case .downloads: ["NSDownloadsFolderUsageDescription"]
    case .removableVolumes: ["NSRemovableVolumesUsageDescription"]
    case .networkVolumes: ["NSNetworkVolumesUsageDescription"]
    case .appData: []
    }
  }

  /// Whether an app without words of its own may not even ask.
  ///
  /// As on Apple's platforms, folders and volumes are asked for with a general text.
  package var requiresUsageText: Bool {
    switch self {
    case .mediaLibrary, .photos, .photosAdd, .contacts, .calendars, .reminders: true
    case .desktop, .documents, .downloads, .removableVolumes, .networkVolumes, .appData: false
    }
  }

  /// Whether it is about files that a person could choose for an app.
  package var isForChoosers: Bool { !requiresUsageText && self != .appData }

  /// Whether an app may ask for it whatever its sandbox allows, as far as the signature says that its user
  /// chooses files for it.
  ///
  /// For any other service, only an app may ask whose sandbox reaches one of its places.
  package func mayBeAskedFor(byChooser isChooser: Bool) -> Bool {
    self != .appData && (isChooser || !isForChoosers)
  }

  /// The directory that takes consent: its name is there for everyone who may ask, and nothing else of it.
  package func place(home: String) -> String { isInHome ? "Users/\(home)/\(folder)" : folder }

  /// The same below the home, where it is in the home.
  package var folder: String {
    switch self {
    case .mediaLibrary: "Music"
    case .photos, .photosAdd: "Pictures"
    case .contacts: "Library/Application Support/AddressBook"
    case .calendars: "Library/Calendars"
    case .reminders: "Library/Reminders"
    case .desktop: "Desktop"
    case .documents: "Documents"
    case .downloads: "Downloads"
    case .removableVolumes: "Volumes"
    case .networkVolumes: "Network"
    case .appData: ContainerLayout.directory(of: .data)
    }
  }

  /// More directories that take the same consent, in a view whose sandbox reaches them.
  private var otherFolders: [String] {
    switch self {
    case .mediaLibrary: ["Movies"]
    case .appData: [ContainerLayout.directory(of: .group), ContainerLayout.directory(of: .cloud)]
    default: []
    }
  }

  /// All directories that take consent, the one of ``place(home:)`` first.
  package func places(home: String) -> [[[UInt8]]] {
    guard isAboutFiles else { return [] }
    return ([place(home: home)] + otherFolders.map { "Users/\(home)/\($0)" }).map {
      ScopePlace($0, .nothing).path
    }
  }

  /// What in its places consent opens to a sandbox that reaches it; patterns stand for names.
  ///
  /// Of another app, only its documents: the rest is the app's own, and groups have no documents.
  package func consented(home: String) -> [[[UInt8]]] {
    guard self == .appData else { return places(home: home) }
    let any = ScopePlace.pattern("")
    return zip(places(home: home), [["Data", "Documents"], [], ["Documents"]]).compactMap { place, inside in
      inside.isEmpty ? nil : place + [any] + inside.map { Array($0.utf8) }
    }
  }

  /// The service of which it is a part.
  package var whole: PrivacyService? { self == .photosAdd ? .photos : nil }

  /// Whether consent changes what an app sees of its ``place(home:)``, and whether access to it asks.
  package var isAboutFiles: Bool { self != .photosAdd }

  /// Whether its ``place(home:)`` is in the home.
  package var isInHome: Bool { self != .removableVolumes && self != .networkVolumes }

  /// What of its ``place(home:)`` an app gets with consent; nothing stands for all of it.
  private func contents(allMusic: Bool) -> [[UInt8]] {
    switch self {
    case .mediaLibrary: allMusic ? [] : [Array("Music".utf8), ScopePlace.pattern(".musiclibrary")]
    case .photos: [ScopePlace.pattern(".photoslibrary")]
    default: []
    }
  }

  /// Whether an app gets what has this name in the place, with consent.
  package func gives(_ name: some Collection<UInt8>, allMusic: Bool = false) -> Bool {
    let contents = contents(allMusic: allMusic)
    return contents.isEmpty || contents.contains { ScopePlace.stands($0, for: name) }
  }

  /// Whether what an app gets may be changed.
  private func isWritable(writesChosenFiles: Bool) -> Bool {
    switch self {
    case .mediaLibrary, .photosAdd: false
    case .photos, .contacts, .calendars, .reminders: true
    case .appData: false
    case .desktop, .documents, .downloads, .removableVolumes, .networkVolumes: writesChosenFiles
    }
  }

  /// What an app has of it without its user's consent: that there is such a place.
  package func withoutConsent(home: String) -> ScopePlace {
    ScopePlace(
      place(home: home), isForChoosers ? .asksUnlessGranted : .asks, isSubtree: false, by: .consent)
  }

  /// What an app has of it with its user's consent; of folders and volumes, what its signature says of files
  /// that are chosen for it.
  ///
  /// `allMusic` says that the media library is the whole Music folder.
  package func withConsent(
    home: String, writesChosenFiles: Bool, allMusic: Bool = false
  ) -> [ScopePlace] {
    let isWritable = isWritable(writesChosenFiles: writesChosenFiles)
    let reach: Reach = isWritable ? [.read, .write, .revocable] : [.read, .revocable]
    let place = ScopePlace(place(home: home), reach, by: .consent)
    let contents = contents(allMusic: allMusic)
    return contents.isEmpty ? [place] : contents.map { ScopePlace(place.path + [$0], reach, by: .consent) }
  }
}

/// What a user has decided about an app and a service.
package enum ConsentState: String, Codable, CaseIterable, Sendable {
  case notDetermined = "not-determined"
  /// An administrator has; no user's answer counts.
  case restricted
  case denied, authorized
}
