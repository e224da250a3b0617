// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Declarations of one source, with what finds them.
///
/// It never changes, so many tables can have it.
package final class TypeLayer: Sendable {
  package let types: [DeclaredType]
  private let byIdentifier: [String: Int]
  private let byMIMEType: [String: Int]
  /// By extension, of files and of directories.
  private let files: [String: Int]
  private let folders: [String: Int]
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
    var (files, folders, byMIMEType) = ([String: Int](), [String: Int](), [String: Int]())
    let find = { (identifier: String) -> DeclaredType? in
      byIdentifier[DeclaredType.key(identifier)].map { types[$0] } ?? table.type(named: identifier)
    }
    for (index, type) in types.enumerated() {
      let all = TypeTable.ancestors(of: type.identifier, find)
      let isFolder = all.contains { $0.identifier == TypeTable.directory }
      for name in type.extensions {
        if isFolder, folders[name] == nil { folders[name] = index }
        if !isFolder, files[name] == nil { files[name] = index }
      }
      for name in type.mimeTypes where byMIMEType[name] == nil { byMIMEType[name] = index }
    }
    (self.files, self.folders, self.byMIMEType) = (files, folders, byMIMEType)
  }

  func type(named key: String) -> DeclaredType? { byIdentifier[key].map { types[$0] } }

  func type(forExtension name: String, isFolder: Bool) -> DeclaredType? {
    (isFolder ? folders[name] : files[name]).map { types[$0] }
  }

  func type(forMIMEType name: String) -> DeclaredType? { byMIMEType[name].map { types[$0] } }

  func isPackage(_ name: String) -> Bool { packages.contains(name) }
}
