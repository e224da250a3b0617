// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
internal import Policy

/// How files are shown to a person: what Finder would call them, and whether it would show them.
struct FinderView {
  /// What is shown of one file.
  struct Shown {
    /// For people: what a file calls itself is nobody's.
    let name: String
    let isHidden: Bool
    /// Whether it is a directory that is one document.
    let isPackage: Bool
  }

  private let names: DisplayNames
  private let aliases: XattrAliases
  /// Whether stores hide extensions, by the device that they are.
  private var hidesExtensions: [UInt64: Bool] = [:]

  init(_ languages: Languages, _ context: Context) {
    names = DisplayNames(languages)
    aliases = context.aliases
  }

  /// What is shown of an object that has this name.
  mutating func look(at object: FD, called name: [UInt8], _ status: FileStatus) -> Shown {
    let text = String(decoding: name, as: UTF8.self)
    let info = object.finderInfo
    let flags = (try? ObjectSecurity(fd: object, aliases: aliases).flags()) ?? []
    let isPackage = status.isDirectory && isPackage(object, text, info)
    let choice =
      (try? object.attributeValue(ExtensionChoice.attribute, limit: ExtensionChoice.sizeLimit)) ?? []
    let shown = names.name(
      of: DisplayNames.Named(
        text, info, isDocument: status.isRegular || isPackage,
        hidesExtension: hidesExtensions(object, status) && !ExtensionChoice.isShown(choice),
        contents: status.isDirectory ? DirectoryContents(of: object) : nil))
    return Shown(
      name: (status.isDirectory && shown == text ? standardName(of: text, object) : nil) ?? shown,
      isHidden: DisplayName.isHidden(name, flags, info), isPackage: isPackage)
  }

  /// Whether a directory is one document: in a store its daemon says so, which knows what apps declare.
  private func isPackage(_ object: FD, _ name: String, _ info: FinderInfo) -> Bool {
    guard let value = try? object.attributeValue(Self.packageAttribute, limit: 1) else {
      return TypeTable.base.isPackage(name, hasBundleBit: info[.isPackage])
    }
    return value == [UInt8(ascii: "1")]
  }

  /// What a directory of the tree is called that everybody knows by its place, which the daemon alone knows.
  private func standardName(of name: String, _ object: FD) -> String? {
    guard let language = names.languages.names.first(where: { FolderNames.name(of: name, in: $0) != nil }),
      let value = try? object.attributeValue("system.insula.name.\(language)", limit: 1024)
    else { return nil }
    return String(decoding: value, as: UTF8.self)
  }

  /// Whether the store that an object is in hides extensions; what is in no store is shown as in a new one.
  private mutating func hidesExtensions(_ object: FD, _ status: FileStatus) -> Bool {
    let device = UInt64(status.st_dev)
    if let known = hidesExtensions[device] { return known }
    let value = try? object.attributeValue(Self.extensionsAttribute, limit: 16)
    let hides = value.map { !$0.elementsEqual("shown".utf8) } ?? true
    hidesExtensions[device] = hides
    return hides
  }

  private static let packageAttribute = "system.insula.package"
  private static let extensionsAttribute = "system.insula.extensions"
}

extension FD {
  /// What the object's attribute says of how it is shown; nothing where there is none that can be read.
  var finderInfo: FinderInfo {
    FinderInfo(((try? attributeValue(FinderInfo.attribute, limit: FinderInfo.size)) ?? nil) ?? [])
  }
}
