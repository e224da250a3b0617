// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
package import Policy
internal import PropertyLists

/// Finds out what objects are called for a person; what they are called on disk stays as it is.
///
/// All that is read is untrusted: what is broken or too long is as good as missing.
package struct DisplayNames: Sendable {
  package let languages: Languages
  /// The catalog of xdg-user-dirs in a language.
  private let catalog: @Sendable (_ language: String) -> [UInt8]?

  package init(
    _ languages: Languages,
    catalog: @escaping @Sendable (_ language: String) -> [UInt8]? = Self.machineCatalog
  ) {
    self.languages = languages
    self.catalog = catalog
  }

  /// An object whose display name is wanted.
  package struct Named {
    package let name: String
    package let info: FinderInfo
    /// Whether it is one document, so that its extension says what kind of one: a file, or a package.
    package let isDocument: Bool
    /// Whether the extensions of documents are hidden where nothing else is said of them.
    package let hidesExtension: Bool
    /// What is in it, if it is a directory.
    package let contents: DirectoryContents?
    /// Whether it is a directory of the tree that everybody knows by its place.
    package let isStandard: Bool

    package init(
      _ name: String, _ info: FinderInfo, isDocument: Bool, hidesExtension: Bool,
      contents: DirectoryContents?,
      isStandard: Bool = false
    ) {
      self.isStandard = isStandard
      self.name = name
      self.info = info
      self.isDocument = isDocument
      self.hidesExtension = hidesExtension
      self.contents = contents
    }
  }

  /// What the object is called, at most as long as a name on disk may be in characters.
  package func name(of object: Named) -> String {
    let name = object.name
    if let contents = object.contents {
      if let stem = DisplayName.localizedStem(of: name), contents.isDirectory([DisplayName.marker]) == true {
        return shown(localizedName(of: stem, contents)) ?? shown(stem) ?? name
      }
      if let app = bundleName(of: name, contents) {
        // An app is not to pass for a document, nor for nothing.
        return shown(DisplayName.looksLikeDocument(app) ? nil : app) ?? name
      }
      if object.isStandard || contents.isDirectory([DisplayName.marker]) == false {
        return folderName(of: name)
      }
    }
    if object.info[.hidesExtension] { return DisplayName.withoutExtension(name) }
    return object.isDocument && object.hidesExtension ? DisplayName.withoutKnownExtension(name) : name
  }

  /// A text in which nothing can be read names nothing, and one that fills the screen names nothing either.
  private func shown(_ text: String?) -> String? {
    text.flatMap {
      let beginning = $0.beginning(Self.lengthLimit)
      return DisplayName.isReadable(beginning) ? beginning : nil
    }
  }

  private static let lengthLimit = 255

  // MARK: X.localized

  /// The first language that the directory has a table of decides, whether its text is in there or not.
  private func localizedName(of stem: String, _ contents: DirectoryContents) -> String? {
    for language in languages.names {
      let path = [DisplayName.marker, "\(language).strings"]
      guard let bytes = contents.read(path, StringsFile.sizeLimit) else { continue }
      do { return try StringsFile.text(of: stem, in: bytes) } catch { continue }
    }
    return nil
  }

  // MARK: Standard directories

  private func folderName(of name: String) -> String {
    for language in languages.names {
      if let known = FolderNames.name(of: name, in: language) { return known }
      guard let message = MessageCatalog.message(for: name), let bytes = catalog(language) else { continue }
      if let text = shown(MessageCatalog.translation(of: message, in: bytes)) { return text }
    }
    return name
  }

  /// The one that this machine has, which is root's.
  package static let machineCatalog: @Sendable (String) -> [UInt8]? = { language in
    try? "/usr/share/locale/\(language)/LC_MESSAGES/xdg-user-dirs.mo".withName { (name) throws(Errno) in
      let file = try FD.cwd.openFollowing(name, O_RDONLY)
      return try file.fd.readToEnd(limit: MessageCatalog.sizeLimit + 1)
    }
  }

  // MARK: Bundles

  /// How long an Info.plist may be, and how much may be in it, for something to be looked for in it: anyone
  /// may have written it.
  static let infoLimit = 256 << 10
  static let infoValueLimit = 20_000

  /// What a bundle is called; nil for what is none.
  ///
  /// A Mac's is called by its name on disk, unless it says that it has names in other languages, and nobody
  /// has renamed it. A phone's is called by what it calls itself: a phone shows no names on disk.
  private func bundleName(of name: String, _ contents: DirectoryContents) -> String? {
    let (stem, ending) = DisplayName.split(name)
    guard ending != nil else { return nil }
    let isFlat = contents.isDirectory(["Contents"]) != true
    let base = isFlat ? [] : ["Contents"]
    guard let bytes = contents.read(base + ["Info.plist"], Self.infoLimit),
      let info = (try? PropertyList(reading: bytes, atMost: Self.infoValueLimit))?.dictionary
    else { return nil }
    let own = shown(info[Self.displayName]?.string) ?? shown(info["CFBundleName"]?.string)
    if !isFlat {
      guard Self.isTrue(info["LSHasLocalizedDisplayName"]), let own, own.utf8.elementsEqual(stem.utf8) else {
        return stem
      }
    }
    let region = info["CFBundleDevelopmentRegion"]?.string
    let resources = isFlat ? [] : base + ["Resources"]
    for language in languages.names {
      for spelling in [language, Self.formerNames[language]].compactMap(\.self) {
        guard
          let table = contents.read(
            resources + ["\(spelling).lproj", "InfoPlist.strings"], StringsFile.sizeLimit)
        else { continue }
        for key in [Self.displayName, "CFBundleName"] {
          if let text = shown(try? StringsFile.text(of: key, in: table)) { return text }
        }
      }
      // What stands in Info.plist is in this language.
      if let region, region == language || region == Self.formerNames[language] { break }
    }
    return isFlat ? own ?? stem : stem
  }

  private static let displayName = "CFBundleDisplayName"

  /// As property lists of apps spell it.
  private static func isTrue(_ value: PropertyList?) -> Bool {
    value?.boolean ?? value?.integer.map { $0 != 0 }
      ?? value?.string.map { ["1", "YES", "true"].contains($0) } ?? false
  }

  /// What the directories of languages were called before languages had codes.
  private static let formerNames = [
    "de": "German", "en": "English", "es": "Spanish", "fr": "French", "it": "Italian", "ja": "Japanese",
    "nl": "Dutch",
  ]
}
