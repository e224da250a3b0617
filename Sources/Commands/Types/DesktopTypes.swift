// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Apps
internal import Policy
internal import Store

/// Which app a desktop opens which MIME types with: the one that `insula open` takes for the files that have
/// them, so that nobody gets others' files by saying so.
struct DesktopTypes {
  /// What the machine has no MIME type for.
  struct Unregistered {
    let mimeType: String
    let kind: String
    let extensions: [String]
    /// What of the machine's it is a kind of, so that other programs know it too.
    let parent: String?
  }

  /// By the app's place in the list.
  private(set) var mimeTypes: [Set<String>]
  private(set) var unregistered: [Unregistered] = []
  private let known: KnownDocuments
  private let positions: [String: Int]
  /// Whose a MIME type is.
  private var owners: [String: Int] = [:]

  /// A desktop reads all of them when it starts, so nobody fills its lists.
  static let limitOfApp = 250
  static let limitOfAll = 5000
  /// Whether there are more types than that.
  private(set) var isCut = false

  private static let ownPrefix = "application/x-insula-"

  /// `machine` has all MIME types that the machine knows.
  init(_ known: KnownDocuments, machine: Set<String> = MIMEGlobs.allOfMachine()) {
    self.known = known
    positions = Dictionary(known.apps.enumerated().map { ($1.identifier, $0) }) { first, _ in first }
    mimeTypes = Array(repeating: [], count: known.apps.count)
    let table = known.table
    /// Who opens the files of each MIME type that the machine has, by their extensions.
    var registered: [String: Set<Int>] = [:]
    var declared: [(mimeType: String, type: DeclaredType)] = []
    for type in table.all + table.allKnownByMIMEType + known.claimedAlone
    where !table.isFolder(type.identifier) {
      var own: [(app: Int, name: String)] = []
      for name in type.extensions
      where (table.type(forExtension: name, isFolder: false) ?? type).identifier == type.identifier {
        guard let app = opener(of: type, name) else { continue }
        if let mimeType = table.registeredMIMEType(forExtension: name) {
          registered[mimeType, default: []].insert(app)
        } else if !name.unicodeScalars.contains(where: Self.isNoPattern) {
          own.append((app, name))
        }
      }
      for mimeType in type.mimeTypes { declared.append((mimeType.lowercased(), type)) }
      register(own, of: type, machine)
    }
    for mimeType in Set(declared.map(\.mimeType)).union(registered.keys).inOrder(by: <)
    where owners[mimeType] == nil && !Self.isReserved(mimeType) {
      guard let app = opener(ofMIMEType: mimeType, registered[mimeType], machine) else { continue }
      own(mimeType, app)
    }
  }

  /// False where it would be one too many.
  @discardableResult
  private mutating func own(_ mimeType: String, _ app: Int) -> Bool {
    guard mimeTypes[app].count < Self.limitOfApp, owners.count < Self.limitOfAll else {
      isCut = true
      return false
    }
    owners[mimeType] = app
    mimeTypes[app].insert(mimeType)
    return true
  }

  private func opener(of type: DeclaredType, _ name: String?) -> Int? {
    known.openers(of: type, nameExtension: name).first.flatMap { positions[$0.identifier] }
  }

  /// What the base system has a type for is opened by whoever opens that; what else the machine knows by
  /// extensions, by whoever opens these, if all have one app; the rest is what apps have thought of.
  private func opener(ofMIMEType name: String, _ registered: Set<Int>?, _ machine: Set<String>) -> Int? {
    if let type = TypeTable.base.type(forMIMEType: name) { return opener(of: type, type.extensions.first) }
    if let registered { return registered.count == 1 ? registered.first : nil }
    guard !machine.contains(name), let type = known.table.type(forMIMEType: name) else { return nil }
    return opener(of: type, type.extensions.first)
  }

  /// Has the desktop know files of extensions that the machine has no MIME type for: by the type's own,
  /// unless that is somebody else's.
  private mutating func register(
    _ found: [(app: Int, name: String)], of type: DeclaredType, _ machine: Set<String>
  ) {
    guard let first = found.first?.app else { return }
    let ofBase = TypeTable.base.type(named: type.identifier) != nil
    var mimeType = type.mimeTypes.first.map { $0.lowercased() } ?? ""
    var parent: String?
    if mimeType.isEmpty || machine.contains(mimeType) || Self.isReserved(mimeType) || owners[mimeType] != nil
      || !ofBase && TypeTable.base.type(forMIMEType: mimeType) != nil
    {
      parent = ofBase && machine.contains(mimeType) ? mimeType : nil
      mimeType = Self.ownPrefix + type.identifier.lowercased()
    }
    for app in Set(found.map(\.app)).inOrder(by: <) {
      let names = found.filter { $0.app == app }.map(\.name)
      let own = app == first ? mimeType : Self.ownPrefix + DynamicType.identifier(forExtension: names[0])
      guard self.own(own, app) else { continue }
      unregistered.append(
        Unregistered(mimeType: own, kind: known.table.kind(of: type), extensions: names, parent: parent))
    }
  }

  /// What says nothing of a file, stands for something other than files, or is not for apps to name.
  private static func isReserved(_ mimeType: String) -> Bool {
    ["inode/", "x-scheme-handler/", "x-content/", ownPrefix].contains(where: mimeType.hasPrefix)
      || ["application/octet-stream", "application/x-zerosize"].contains(mimeType)
  }

  /// What would mean something else in a pattern, or can't stand in a list of patterns or in XML.
  private static func isNoPattern(_ scalar: Unicode.Scalar) -> Bool {
    "*?[]\\:".unicodeScalars.contains(scalar) || !scalar.isPrintable
  }
}
