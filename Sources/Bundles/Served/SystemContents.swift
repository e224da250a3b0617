// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO

/// What the seal of a system domain says of all that is in it, loaded from the tree itself.
package final class SystemContents: SealedContents {
  /// Whose things those are that the seal gives to zero.
  package struct Owner: Sendable {
    let uid: UInt32
    let gid: UInt32

    package init(uid: UInt32, gid: UInt32) {
      self.uid = uid
      self.gid = gid
    }
  }

  /// What is sealed of anything, whatever it is; a few of these serve a whole tree.
  private struct Traits: Hashable {
    let mode: UInt32
    let uid: UInt32
    let gid: UInt32
    let attributes: [UInt8]?
  }

  private let tree: SealedTree
  private let traits: [Traits]
  /// Of directories, by their numbers in the tree; files and links have theirs in what the tree keeps of
  /// them.
  private let directories: [UInt32: UInt32]

  /// Loads the seal of the tree that a directory is; the seal's digest must be one of `roots`.
  package init(in top: FD, roots: [[UInt8]], owner: Owner) throws(Finding) {
    let (bytes, signature) = try Self.read(in: top)
    guard roots.contains(try Digest.sha256(of: bytes)) else { throw Finding(.signatureMismatch) }
    let seal: SystemSeal
    do throws(MalformedSystemSeal) { seal = try SystemSeal(reading: bytes) } catch {
      throw Finding(.malformedCodeResources, detail: error.reason)
    }
    var builder = SealedTree.Builder()
    var known: [Traits: UInt32] = [:]
    var ofDirectories: [(path: [UInt8], traits: UInt32)] = []
    for entry in seal.entries {
      let traits = Traits(
        mode: entry.mode, uid: entry.uid == 0 ? owner.uid : entry.uid,
        gid: entry.gid == 0 ? owner.gid : entry.gid, attributes: entry.attributes)
      let number = known[traits] ?? UInt32(clamping: known.count)
      known[traits] = number
      let spelled = withUnsafeBytes(of: number) { Array($0) }
      // Paths of no text are refused by what reads names; the seal of a system is of bytes.
      let path = entry.path
      switch entry.kind {
      case .directory:
        try builder.add(directory: path)
        ofDirectories.append((path, number))
      case .file(let size, let digest):
        let length = withUnsafeBytes(of: size) { Array($0) }
        try builder.add(path, .file, isOptional: false, payload: spelled + length + digest)
      case .link(let target):
        try builder.add(path, .symlink, isOptional: false, payload: spelled + target)
      }
    }
    for (name, digest) in [
      (SystemSeal.sealName, try Digest.sha256(of: bytes)), (SystemSeal.signatureName, signature),
    ] {
      let path = Array("\(SystemSeal.directoryName)/\(name)".utf8)
      try builder.add(path, .executable, isOptional: false, payload: digest)
    }
    tree = try builder.tree()
    traits = known.inOrder { $0.value < $1.value }.map(\.key)
    var directories: [UInt32: UInt32] = [:]
    for (path, traits) in ofDirectories { directories[try Self.number(of: path, in: tree)] = traits }
    self.directories = directories
    let status = try Finding.instead(of: .unreadable, "") { () throws(Errno) in try top.status() }
    if let finding = finding(about: top, status, at: .root) { throw finding }
  }

  /// The bytes of the seal, and the digest that its signature must have: none where that is no signature of
  /// it.
  private static func read(in top: FD) throws(Finding) -> (bytes: [UInt8], signature: [UInt8]) {
    func part(_ name: String, limit: Int) throws(Finding) -> [UInt8] {
      try Finding.instead(of: .unreadable, "\(SystemSeal.directoryName)/\(name)") { () throws(Errno) in
        let directory = try top.openDirectoryToExamine(SystemSeal.directoryName)
        let file = try directory.fd.openToExamine(name, sparingTime: true)
        return try file.fd.contentsIfRegular(limit: limit)
      }
    }
    let bytes = try part(SystemSeal.sealName, limit: SystemSeal.maximumSize)
    guard let signature = try? part(SystemSeal.signatureName, limit: Trust.maximumSignatureSize),
      (try? Trust.check(signature, of: bytes)) != nil
    else { return (bytes, []) }
    return (bytes, try Digest.sha256(of: signature))
  }

  private static func number(of path: [UInt8], in tree: SealedTree) throws(Finding) -> UInt32 {
    var number: UInt32 = 0
    for name in path.split(separator: 0x2f) {
      guard let next = name.withUnsafeBufferPointer({ tree.find($0, in: number) }) else {
        throw ResourceSeal.malformed("a directory is not in its place")
      }
      number = next
    }
    return number
  }

  package func position(
    of name: UnsafeBufferPointer<UInt8>, type: FileMode, in directory: SealedPosition
  ) throws(Finding) -> SealedPosition {
    guard case .sealed(let number) = directory, let found = tree.find(name, in: number) else {
      let above = path(of: directory)
      let text = String(decoding: name, as: UTF8.self)
      throw Finding(.added, above.isEmpty ? text : "\(above)/\(text)")
    }
    let expected: FileMode =
      switch tree.kind(of: found) {
      case .directory, .nested, nil: S_IFDIR
      case .symlink: S_IFLNK
      case .file, .executable: S_IFREG
      }
    guard type == expected else { throw Finding(.typeChanged, tree.path(of: found)) }
    return .sealed(found)
  }

  package func absence(of name: UnsafeBufferPointer<UInt8>, in directory: SealedPosition) -> Finding? {
    guard case .sealed(let number) = directory, let missing = tree.find(name, in: number) else { return nil }
    return Finding(.missing, tree.path(of: missing))
  }

  package func nested(at position: SealedPosition) -> NestedSeal? { nil }

  package func isSealed(_ position: SealedPosition) -> Bool { true }

  package func finding(about object: FD, _ status: FileStatus, at position: SealedPosition) -> Finding? {
    guard case .sealed(let number) = position else { return nil }
    let index = directories[number] ?? (tree.kind(of: number) == .symlink ? traitsIndex(of: number) : nil)
    return index.flatMap { finding(about: object, status, $0, number) }
  }

  package func finding(in file: FD, at position: SealedPosition) -> Finding? {
    guard case .sealed(let number) = position else { return nil }
    let path = tree.path(of: number)
    let payload = tree.payload(of: number)
    do throws(Finding) {
      let digest = try SealedFile(file, path).digest(.sha256)
      // Of the signature only its bytes are known.
      if tree.kind(of: number) == .executable {
        return digest.elementsEqual(payload) ? nil : Finding(.changed, path)
      }
      guard digest.elementsEqual(payload.dropFirst(12)) else { return Finding(.changed, path) }
      let status = try Finding.instead(of: .unreadable, path) { () throws(Errno) in try file.status() }
      guard let index = traitsIndex(of: number) else { return Finding(.typeChanged, path) }
      return finding(about: file, status, index, number)
    } catch {
      return error
    }
  }

  package func finding(target: UnsafeRawBufferPointer, at position: SealedPosition) -> Finding? {
    guard case .sealed(let number) = position else { return nil }
    guard tree.kind(of: number) == .symlink, target.elementsEqual(tree.payload(of: number).dropFirst(4))
    else {
      return Finding(.symlinkChanged, tree.path(of: number))
    }
    return nil
  }

  package func path(of position: SealedPosition) -> String {
    guard case .sealed(let number) = position else { return "" }
    return tree.path(of: number)
  }

  private func traitsIndex(of number: UInt32) -> UInt32? {
    let payload = tree.payload(of: number)
    guard payload.count >= 4 else { return nil }
    return payload.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) }
  }

  private func finding(about object: FD, _ status: FileStatus, _ index: UInt32, _ number: UInt32) -> Finding?
  {
    guard Int(index) < traits.count else { return Finding(.typeChanged, tree.path(of: number)) }
    let traits = traits[Int(index)]
    func changed(_ what: String) -> Finding { Finding(.changed, tree.path(of: number), detail: what) }
    if status.st_uid != traits.uid || status.st_gid != traits.gid { return changed("its owner") }
    if status.isSymlink { return nil }
    if UInt32(status.permissions) != traits.mode { return changed("its mode") }
    do throws(SystemSealFailure) {
      let walk = SystemSealWalk(.everything, progress: { _ in })
      guard try walk.attributes(of: object, []) == traits.attributes else { return changed("its attributes") }
      return nil
    } catch {
      return Finding(.unreadable, tree.path(of: number), detail: error.reason)
    }
  }
}

/// What there is to say of a tree that has no seal.
package final class NoSeal: SealedContents {
  package init() {}

  package func position(
    of name: UnsafeBufferPointer<UInt8>, type: FileMode, in directory: SealedPosition
  ) throws(Finding) -> SealedPosition { .free }
  package func absence(of name: UnsafeBufferPointer<UInt8>, in directory: SealedPosition) -> Finding? { nil }
  package func nested(at position: SealedPosition) -> NestedSeal? { nil }
  package func finding(about object: FD, _ status: FileStatus, at position: SealedPosition) -> Finding? {
    nil
  }
  package func isSealed(_ position: SealedPosition) -> Bool { false }
  package func finding(in file: FD, at position: SealedPosition) -> Finding? { nil }
  package func finding(target: UnsafeRawBufferPointer, at position: SealedPosition) -> Finding? { nil }
  package func path(of position: SealedPosition) -> String { "" }
}
