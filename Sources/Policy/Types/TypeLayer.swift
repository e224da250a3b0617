// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Declarations of one source, with what finds them.
///
/// It never changes, so many tables can have it. Apps may declare whatever they like, so making one takes
/// time in proportion to what is declared, whatever conforms to what.
package final class TypeLayer: Sendable {
  package let types: [DeclaredType]
  private let byIdentifier: [String: Int]
  private let byMIMEType: [String: Int]
  /// By extension, of files and of directories.
  private let files: [String: Int]
  private let folders: [String: Int]
  /// The types that conform to public.directory.
  private let areFolders: [Bool]
  /// Extensions that belong to packages without having a type.
  private let packages: Set<String>

  /// Of several declarations of one identifier, the first counts, and those of the `table` below before all;
  /// the same holds for extensions.
  package init(_ declared: [DeclaredType], packages: [String] = [], over table: TypeTable) {
    var types: [DeclaredType] = []
    var byIdentifier: [String: Int] = [:]
    for type in declared {
      let key = DeclaredType.key(type.identifier)
      guard byIdentifier[key] == nil, table.type(named: type.identifier) == nil else { continue }
      byIdentifier[key] = types.count
      types.append(type)
    }
    self.types = types
    self.byIdentifier = byIdentifier
    self.packages = Set(packages)
    areFolders = Self.areFolders(types, byIdentifier, over: table)
    var (files, folders, byMIMEType) = ([String: Int](), [String: Int](), [String: Int]())
    for (index, type) in types.enumerated() {
      for name in type.extensions {
        if areFolders[index], folders[name] == nil { folders[name] = index }
        if !areFolders[index], files[name] == nil { files[name] = index }
      }
      for name in type.mimeTypes where byMIMEType[name] == nil { byMIMEType[name] = index }
    }
    (self.files, self.folders, self.byMIMEType) = (files, folders, byMIMEType)
  }

  /// Looks at what each type conforms to once, from those that are known to be directories on.
  private static func areFolders(
    _ types: [DeclaredType], _ byIdentifier: [String: Int], over table: TypeTable
  ) -> [Bool] {
    var areFolders = [Bool](repeating: false, count: types.count)
    var children = [[Int]](repeating: [], count: types.count)
    var found: [Int] = []
    for (index, type) in types.enumerated() {
      var isFolder = DeclaredType.key(type.identifier) == TypeTable.directory
      for parent in type.parents.map(DeclaredType.key) {
        if let parent = byIdentifier[parent] { children[parent].append(index) }
        if table.isFolder(parent) { isFolder = true }
      }
      guard isFolder else { continue }
      areFolders[index] = true
      found.append(index)
    }
    while let index = found.popLast() {
      for child in children[index] where !areFolders[child] {
        areFolders[child] = true
        found.append(child)
      }
    }
    return areFolders
  }

  func type(named key: String) -> DeclaredType? { byIdentifier[key].map { types[$0] } }

  /// Whether a type conforms to public.directory; nil for one that is not in here.
  func isFolder(_ key: String) -> Bool? { byIdentifier[key].map { areFolders[$0] } }

  func type(forExtension name: String, isFolder: Bool) -> DeclaredType? {
    (isFolder ? folders[name] : files[name]).map { types[$0] }
  }

  func type(forMIMEType name: String) -> DeclaredType? { byMIMEType[name].map { types[$0] } }

  func isPackage(_ name: String) -> Bool { packages.contains(name) }
}
