// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Policy
internal import PropertyLists

// What an app says of types and documents. Everybody who looks at a file meets it, so what could be meant to
// deceive or to cost too much is refused, by name.

extension BundleInfo {
  /// What its declarations may have.
  package enum DeclarationLimits {
    /// Types, and as many entries of documents.
    package static let count = 500
    /// In the registry, of all of them.
    package static let bytes = 64 << 10
    package static let identifierBytes = 200
    /// Parents, extensions, MIME types: of each type.
    package static let listed = 64
    fileprivate static let nameScalars = 100
  }

  /// Who may declare those is the system.
  private static let reserved = ["public.", "com.apple.", "dyn."]

  /// Reads UTExportedTypeDeclarations, UTImportedTypeDeclarations and CFBundleDocumentTypes.
  package func declarations() throws(Finding) -> AppDeclarations {
    var found = AppDeclarations()
    found.exported = try types("UTExportedTypeDeclarations", areOwn: true)
    found.imported = try types("UTImportedTypeDeclarations", areOwn: false)
    if let circle = TypeCircle.find(in: found.exported + found.imported) {
      throw Self.refusal(Self.words(ofCircle: circle))
    }
    found.claims = try entries("CFBundleDocumentTypes").flatMap(Self.claims)
    let browsesDocuments = list["UISupportsDocumentBrowser"]?.boolean ?? false
    found.opensInPlace = list["LSSupportsOpeningDocumentsInPlace"]?.boolean ?? browsesDocuments
    found.sharesDocuments = list["UIFileSharingEnabled"]?.boolean ?? browsesDocuments
    let bytes = found.text.utf8.count
    guard bytes <= DeclarationLimits.bytes else {
      throw Self.refusal(
        "its declarations of types and documents take \(bytes) bytes; "
          + "they may take \(DeclarationLimits.bytes)")
    }
    return found
  }

  /// For a message: how a type conforms to itself.
  package static func words(ofCircle identifiers: [String]) -> String {
    let shown = identifiers.prefix(5).map { "'\($0)'" } + (identifiers.count > 5 ? ["..."] : [])
    let path = (shown + ["'\(identifiers[0])'"]).joined(separator: ", which conforms to ")
    return "types conform to each other in a circle: \(path)"
  }

  private static func checkIsFree(_ identifier: String, _ key: String) throws(Finding) {
    guard let prefix = reserved.first(where: identifier.lowercased().hasPrefix) else { return }
    throw refusal(
      "\(key): '\(identifier)' is not the app's to declare: only the system declares '\(prefix)*'; list it "
        + "in UTImportedTypeDeclarations")
  }

  private func types(_ key: String, areOwn: Bool) throws(Finding) -> [DeclaredType] {
    var types: [DeclaredType] = []
    for entry in try entries(key) {
      guard let identifier = entry["UTTypeIdentifier"]?.string else {
        throw Self.refusal("\(key): a type has no UTTypeIdentifier")
      }
      guard Self.isIdentifier(identifier) else {
        throw Self.refusal(
          "\(key): '\(identifier.beginning(60))' is no type: it may contain only letters, digits, '-', '_' "
            + "and '.', and at most \(DeclarationLimits.identifierBytes) of them")
      }
      if areOwn { try Self.checkIsFree(identifier, key) }
      let tags = entry["UTTypeTagSpecification"]?.dictionary
      func listed(_ value: PropertyList?, _ what: String) throws(Finding) -> [String] {
        let texts = Self.texts(value)
        guard texts.count <= DeclarationLimits.listed else {
          throw Self.refusal(
            "\(key): '\(identifier)' has \(texts.count) \(what); it may have \(DeclarationLimits.listed)")
        }
        return texts
      }
      types.append(
        DeclaredType(
          identifier, parents: try listed(entry["UTTypeConformsTo"], "parents").filter(Self.isIdentifier),
          extensions: try listed(tags?["public.filename-extension"], "extensions").compactMap(
            NameExtension.declared),
          mimeTypes: try listed(tags?["public.mime-type"], "MIME types").filter(Self.isMIMEType),
          kind: Self.name(entry["UTTypeDescription"])))
    }
    return types
  }

  private func entries(_ key: String) throws(Finding) -> [PropertyList.Dictionary] {
    let entries = list[key]?.array ?? []
    guard entries.count <= DeclarationLimits.count else {
      throw Self.refusal("\(key) has \(entries.count) entries; it may have \(DeclarationLimits.count)")
    }
    return entries.compactMap(\.dictionary)
  }

  /// None for what is not there to open documents: what only draws their icons, for example.
  private static func claims(_ entry: PropertyList.Dictionary) -> [AppDeclarations.Claim] {
    let role = entry["CFBundleTypeRole"]?.string ?? "Viewer"
    guard ["Editor", "Viewer", "Shell"].contains(role) else { return [] }
    let extensions = texts(entry["CFBundleTypeExtensions"]).compactMap {
      $0 == "*" ? $0 : NameExtension.declared($0)
    }
    func claim(_ types: [String], _ extensions: [String]) -> AppDeclarations.Claim {
      AppDeclarations.Claim(
        name: name(entry["CFBundleTypeName"]),
        rank: entry["LSHandlerRank"]?.string.flatMap(HandlerRank.init) ?? .default,
        isPackage: entry["LSTypeIsPackage"]?.boolean ?? false, types: types, extensions: extensions)
    }
    let types = texts(entry["LSItemContentTypes"]).filter(isIdentifier)
    let claims = [claim(types, extensions)]
    guard types.isEmpty else { return claims }
    // As apps from before there were types have it, beside extensions.
    let mimeTypes = texts(entry["CFBundleTypeMIMETypes"]).prefix(DeclarationLimits.listed)
    let known = mimeTypes.compactMap { TypeTable.base.type(forMIMEType: $0.lowercased())?.identifier }
    return known.isEmpty ? claims : claims + [claim(known, [])]
  }

  /// One text may stand for a list of one.
  private static func texts(_ value: PropertyList?) -> [String] {
    (value?.array ?? value.map { [$0] } ?? []).compactMap(\.string)
  }

  private static func name(_ value: PropertyList?) -> String {
    (value?.string ?? "").beginning(DeclarationLimits.nameScalars).sanitized
  }

  private static func isIdentifier(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.count <= DeclarationLimits.identifierBytes
      && text.utf8.allSatisfy { isWord($0) || "-_.".utf8.contains($0) }
  }

  private static func isMIMEType(_ text: String) -> Bool {
    text.utf8.count <= 127 && text.utf8.filter { $0 == UInt8(ascii: "/") }.count == 1
      && text.utf8.allSatisfy { isWord($0) || "/-_.+!#$&^".utf8.contains($0) }
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
    default: false
    }
  }
}
