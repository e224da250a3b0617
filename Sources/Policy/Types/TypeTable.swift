// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What types there are, and which one a file has: by its name, never by its contents.
package struct TypeTable: Sendable {
  /// What an object is, besides its name.
  package enum Form: Sendable {
    case file, program, folder, link, volume
    /// A fifo, socket or device.
    case special
  }

  package static let directory = "public.directory"
  package static let package = "com.apple.package"
  static let data = "public.data"

  /// Where several have something to say, the first.
  private let layers: [TypeLayer]
  private let globs: MIMEGlobs

  /// The base system's declarations.
  package static let base = TypeTable(
    layers: [
      TypeLayer(
        "\(BaseTypes.text)".split(separator: "\n").compactMap {
          DeclaredType(fields: $0.split(separator: "|", omittingEmptySubsequences: false))
        }, over: TypeTable(layers: [], globs: MIMEGlobs()))
    ], globs: MIMEGlobs())

  private init(layers: [TypeLayer], globs: MIMEGlobs) {
    self.layers = layers
    self.globs = globs
  }

  /// The same, with something that is asked where the rest has nothing to say.
  package func adding(_ layer: TypeLayer) -> TypeTable { TypeTable(layers: layers + [layer], globs: globs) }

  package func with(_ globs: MIMEGlobs) -> TypeTable { TypeTable(layers: layers, globs: globs) }

  /// All that are declared.
  package var all: [DeclaredType] { layers.flatMap(\.types) }

  /// The types of files of which only the machine's MIME type is known.
  package var allKnownByMIMEType: [DeclaredType] {
    globs.extensions.filter { type(forExtension: $0, isFolder: false) == nil }.map(undeclared)
  }

  // MARK: Looking up

  /// Whether a type conforms to public.directory, as far as its own layer and those before know.
  package func isFolder(_ identifier: String) -> Bool {
    let key = DeclaredType.key(identifier)
    for layer in layers { if let isFolder = layer.isFolder(key) { return isFolder } }
    return false
  }

  /// The type of that identifier; nil for one that nobody has declared.
  package func type(named identifier: String) -> DeclaredType? {
    let key = DeclaredType.key(identifier)
    for layer in layers { if let found = layer.type(named: key) { return found } }
    return DynamicType.nameExtension(of: key).map(undeclared)
  }

  /// The type that an extension, in lower case, stands for; nil for one that nobody has declared, and of
  /// which no MIME type is known that somebody has.
  package func type(forExtension name: String, isFolder: Bool) -> DeclaredType? {
    for layer in layers {
      if let found = layer.type(forExtension: name, isFolder: isFolder) { return found }
    }
    return isFolder ? nil : globs[name].flatMap(type(forMIMEType:))
  }

  /// The type that a MIME type stands for; nil for one that nobody has declared.
  package func type(forMIMEType mimeType: String) -> DeclaredType? {
    for layer in layers { if let found = layer.type(forMIMEType: mimeType) { return found } }
    return nil
  }

  /// The type of an object with that name; `hasBundleBit` says that the Finder's bit for packages is set.
  package func type(
    of name: UnsafeBufferPointer<UInt8>, _ form: Form, hasBundleBit: Bool = false
  ) -> DeclaredType {
    switch form {
    case .link: return Self.usual.link
    case .volume: return Self.usual.volume
    case .special: return Self.usual.item
    case .folder, .file, .program: break
    }
    let name = NameExtension.of(name)
    if let name, let found = type(forExtension: name, isFolder: form == .folder) { return found }
    if form == .folder {
      let isPackage = hasBundleBit || (name.map { name in layers.contains { $0.isPackage(name) } } ?? false)
      return isPackage ? Self.usual.package : Self.usual.folder
    }
    if let name { return undeclared(name) }
    return form == .program ? Self.usual.program : Self.usual.data
  }

  package func type(of name: String, _ form: Form, hasBundleBit: Bool = false) -> DeclaredType {
    var name = name
    return name.withUTF8 { type(of: $0, form, hasBundleBit: hasBundleBit) }
  }

  /// Whether a directory of that name is shown as one document: because its type conforms to
  /// com.apple.package, an app says so of its extension, or the Finder's bundle bit is set.
  package func isPackage(_ name: UnsafeBufferPointer<UInt8>, hasBundleBit: Bool = false) -> Bool {
    if hasBundleBit { return true }
    guard let name = NameExtension.of(name) else { return false }
    guard let type = type(forExtension: name, isFolder: true) else {
      return layers.contains { $0.isPackage(name) }
    }
    return conforms(type.identifier, to: Self.package)
  }

  package func isPackage(_ name: String, hasBundleBit: Bool = false) -> Bool {
    var name = name
    return name.withUTF8 { isPackage($0, hasBundleBit: hasBundleBit) }
  }

  /// The type of something whose name has led to `found`; that of a mere folder is what its Info.plist says.
  package func type(_ found: DeclaredType, byInfoPlist own: @autoclosure () -> String?) -> DeclaredType {
    guard found.identifier == Self.usual.folder.identifier, let own = own() else { return found }
    return type(named: own) ?? found
  }

  /// The MIME type of a file that has this type and this name.
  package func mimeType(of type: DeclaredType, named name: String) -> String? {
    let usual = NameExtension.of(name).flatMap { globs[$0] }
    return usual.flatMap { type.mimeTypes.contains($0) ? $0 : nil } ?? type.mimeTypes.first ?? usual
  }

  /// The MIME type that the machine has for an extension.
  package func registeredMIMEType(forExtension name: String) -> String? { globs[name] }

  /// What a person calls something of this type: what it is called itself, or else by what it is.
  package func kind(of type: DeclaredType) -> String {
    var kind = "document"
    walk(from: type) { ancestor in
      if !ancestor.kind.isEmpty { kind = ancestor.kind }
      return ancestor.kind.isEmpty
    }
    guard type.identifier.hasPrefix(DynamicType.prefix), let name = type.extensions.first,
      name.utf8.count <= 8
    else { return kind }
    return "\(name.uppercased().sanitized) \(kind)"
  }

  // MARK: Conformance

  /// How many of the types that one conforms to are looked at.
  ///
  /// Those of the base system conform to less than twenty; apps may declare thousands, and whoever looks at a
  /// file is not to pay for that.
  package static let mostAncestors = 200

  /// Whether a type is another one, or conforms to it through any number of others.
  package func conforms(_ identifier: String, to other: String) -> Bool {
    let key = DeclaredType.key(other)
    if DeclaredType.key(identifier) == key { return true }
    guard let type = type(named: identifier) else { return false }
    var isFound = false
    walk(from: type) { ancestor in
      isFound = DeclaredType.key(ancestor.identifier) == key
      return !isFound
    }
    return isFound
  }

  /// The type itself, and all that it conforms to, nearest first; types that nobody has declared are left
  /// out.
  package func ancestors(of identifier: String) -> [DeclaredType] {
    type(named: identifier).map { walk(from: $0) { _ in true } } ?? []
  }

  /// Goes through what a type conforms to, nearest first, as long as `goesOn` says so; gives what was looked
  /// at.
  ///
  /// Nothing is visited twice: a layer has no circles, but two may have one between them.
  @discardableResult
  private func walk(from type: DeclaredType, while goesOn: (DeclaredType) -> Bool) -> [DeclaredType] {
    var found = [type]
    var seen: Set<String> = [DeclaredType.key(type.identifier)]
    var next = 0
    while next < found.count, goesOn(found[next]) {
      for parent in found[next].parents where found.count < Self.mostAncestors {
        guard seen.insert(DeclaredType.key(parent)).inserted, let type = self.type(named: parent)
        else { continue }
        found.append(type)
      }
      next += 1
    }
    return found
  }

  // MARK: What nobody has declared

  /// A type for files of an extension that nobody has declared.
  private func undeclared(_ name: String) -> DeclaredType {
    let mimeType = globs[name]
    return DeclaredType(
      DynamicType.identifier(forExtension: name), parents: [mimeType.map(Self.parent) ?? Self.data],
      extensions: [name], mimeTypes: mimeType.map { [$0] } ?? [])
  }

  /// What a MIME type says of what is known by nothing else.
  private static func parent(ofMIMEType name: String) -> String {
    switch name.prefix(while: { $0 != "/" }) {
    case "text": "public.text"
    case "image": "public.image"
    case "audio": "public.audio"
    case "video": "public.movie"
    case "font": "public.font"
    default: data
    }
  }

  /// What objects have whose names say nothing.
  private static let usual = (
    item: known("public.item"), data: known(data), program: known("public.unix-executable"),
    folder: known("public.folder"), package: known(package), volume: known("public.volume"),
    link: known("public.symlink")
  )

  private static func known(_ identifier: String) -> DeclaredType {
    base.type(named: identifier) ?? DeclaredType(identifier, parents: [])
  }
}
