// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
internal import PropertyLists

/// The digest that proves that a served bundle is the one that was installed.
package enum InstalledDigest: Equatable, Sendable {
  /// By ``CodeBundle/sealDigest()``, which must be one of these.
  case digests([[UInt8]])
  /// By what the seal of the bundle around it says.
  case nested(NestedSeal)
}

/// What the seal of a bundle says of all that is in it, loaded from the bundle itself.
///
/// Neither certificates nor the time count: the installed digest says that this is what has been verified
/// before. What is wrong with one file is no reason not to have the seal; what is wrong with the signature
/// is.
package final class BundleContents: SealedContents {
  /// In front of all sealed paths: `Contents/` or nothing.
  private let prefix: String
  private let tree: SealedTree
  private let rules: PathRules
  package let isSandboxed: Bool

  /// Loads the seal of the bundle that a directory, open for reading or just named, is.
  package init(in root: FD, installed: InstalledDigest) throws(Finding) {
    let signature = try SignedBundle.find(in: root, installed)
    let seal = try ResourceSeal(reading: signature.resources)
    prefix = signature.prefix
    isSandboxed = signature.isSandboxed
    rules = PathRules(seal.rules)
    var builder = SealedTree.Builder()
    try signature.add(to: &builder, hasResourcesEntry: seal.entry(for: SealLayout.codeResources) != nil)
    for entry in seal.entries {
      // They are sealed by the signature, whatever the list says of them.
      if signature.knows(entry.path) { continue }
      try builder.add(
        prefix + entry.path, entry.content.kind, isOptional: entry.isOptional, payload: entry.content.payload)
    }
    tree = try builder.tree()
  }

  package func position(
    of name: UnsafeBufferPointer<UInt8>, type: FileMode, in directory: SealedPosition
  ) throws(Finding) -> SealedPosition {
    switch directory {
    case .free:
      guard type == S_IFREG || type == S_IFDIR || type == S_IFLNK else {
        throw Finding(.specialFile, String(decoding: name, as: UTF8.self))
      }
      return .free
    case .unsealed(let path):
      return try unexpected(path + "/" + String(decoding: name, as: UTF8.self), name, type)
    case .sealed(let number):
      guard let found = tree.find(name, in: number) else {
        let path = tree.path(of: number)
        let text = String(decoding: name, as: UTF8.self)
        return try unexpected(path.isEmpty ? text : path + "/" + text, name, type)
      }
      guard type == tree.kind(of: found)?.type else { throw Finding(.typeChanged, tree.path(of: found)) }
      return .sealed(found)
    }
  }

  /// Where something stands that the seal does not list.
  private func unexpected(
    _ path: String, _ name: UnsafeBufferPointer<UInt8>, _ type: FileMode
  ) throws(Finding) -> SealedPosition {
    guard let text = String(validating: name, as: UTF8.self) else { throw Finding(.badName, path) }
    if let control = SealLayout.control(in: text) { throw Finding(.badName, path, detail: control) }
    guard type == S_IFREG || type == S_IFDIR || type == S_IFLNK else {
      throw Finding(.specialFile, path)
    }
    guard prefix.isEmpty || path.utf8.starts(with: prefix.utf8) else {
      guard type == S_IFREG, SealLayout.rootFiles.contains(where: { $0.hasSameBytes(as: path) }) else {
        throw Finding(.unsealedRoot, path)
      }
      return .free
    }
    let relative = String(Substring(path.utf8.dropFirst(prefix.utf8.count)))
    if relative.utf8.starts(with: (SealLayout.signatureDirectory + "/").utf8) {
      throw Finding(.guestInSignature, path)
    }
    if type == S_IFDIR, relative.hasSameBytes(as: SealLayout.receiptDirectory) { return .free }
    let rule = try rules.rule(for: relative)
    switch type {
    case S_IFDIR:
      if let rule, rule.isNested, name.contains(0x2e) { throw Finding(.added, path) }
      return .unsealed(path: path)
    case S_IFLNK:
      if rule?.isOmitted ?? true {
        throw Finding(.badSymlink, path, detail: "the rules exclude it")
      }
      throw Finding(.added, path)
    default:
      guard rule?.isOmitted ?? true else { throw Finding(.added, path) }
      return .free
    }
  }

  package func absence(of name: UnsafeBufferPointer<UInt8>, in directory: SealedPosition) -> Finding? {
    guard case .sealed(let number) = directory, let missing = tree.find(name, in: number),
      !tree.isOptional(missing)
    else { return nil }
    return Finding(.missing, tree.path(of: missing))
  }

  package func nested(at position: SealedPosition) -> NestedSeal? {
    guard case .sealed(let number) = position, tree.kind(of: number) == .nested else { return nil }
    let payload = tree.payload(of: number)
    return NestedSeal(
      cdhash: Array(payload.prefix(20)), requirement: String(decoding: payload.dropFirst(20), as: UTF8.self))
  }

  package func finding(about object: FD, _ status: FileStatus, at position: SealedPosition) -> Finding? {
    // A seal of a bundle says nothing of modes, owners and directories.
    nil
  }

  package func isSealed(_ position: SealedPosition) -> Bool {
    guard case .sealed = position else { return false }
    return true
  }

  package func finding(in file: FD, at position: SealedPosition) -> Finding? {
    guard case .sealed(let number) = position else { return nil }
    let path = tree.path(of: number)
    let payload = tree.payload(of: number)
    do throws(Finding) {
      switch tree.kind(of: number) {
      case .file:
        guard let algorithm = ResourceSeal.Algorithm(rawValue: Int(payload.first ?? 0)),
          try SealedFile(file, path).digest(algorithm).elementsEqual(payload.dropFirst())
        else { return Finding(.changed, path) }
      case .executable:
        guard try SealedFile(file, path).pageDigest().elementsEqual(payload) else {
          return Finding(.executableAltered, path)
        }
      case .directory, .symlink, .nested, nil: return Finding(.typeChanged, path)
      }
      return SealReader.hasSideband(file) ? Finding(.sideband, path) : nil
    } catch {
      return error
    }
  }

  package func finding(target: UnsafeRawBufferPointer, at position: SealedPosition) -> Finding? {
    guard case .sealed(let number) = position else { return nil }
    guard tree.kind(of: number) == .symlink, target.elementsEqual(tree.payload(of: number)) else {
      return Finding(.symlinkChanged, tree.path(of: number))
    }
    return nil
  }

  package func path(of position: SealedPosition) -> String {
    switch position {
    case .sealed(let number): tree.path(of: number)
    case .unsealed(let path): path
    case .free: ""
    }
  }
}

extension SealedTree.Kind {
  /// The type that an object of this kind has.
  fileprivate var type: FileMode {
    switch self {
    case .directory, .nested: S_IFDIR
    case .file, .executable: S_IFREG
    case .symlink: S_IFLNK
    }
  }
}

extension ResourceSeal.Content {
  fileprivate var kind: SealedTree.Kind {
    switch self {
    case .file: .file
    case .symlink: .symlink
    case .nested: .nested
    }
  }

  fileprivate var payload: [UInt8] {
    switch self {
    case .file(let algorithm, let digest): [UInt8(truncatingIfNeeded: algorithm.rawValue)] + digest
    case .symlink(let target): Array(target.utf8)
    case .nested(let seal): seal.cdhash + Array(seal.requirement.utf8)
    }
  }
}
