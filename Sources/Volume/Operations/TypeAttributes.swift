// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

/// An extended attribute that says what something is, for whoever asks: none is stored, listed or set.
enum TypeAttribute: String {
  /// Its uniform type identifier.
  case type
  /// What a person calls something of that type.
  case kind
  /// `1` for a directory that is shown as one document, else `0`.
  case package

  static let prefix: StaticString = "system.insula."

  init?(_ name: Name) {
    guard let text = String(validatingCString: name.bytes) else { return nil }
    self.init(rawValue: String(text.dropFirst(Self.prefix.utf8CodeUnitCount)))
  }
}

extension View {
  /// What whoever asks may know of types.
  func types(for caller: Caller) -> TypeTable {
    guard gate.isApps else { return volume.types(caller.uid, nil) }
    return app.map { volume.types(caller.uid, $0) } ?? .base
  }

  /// Whether an attribute has to be worked out: of what apps declare, or of files that are read for it.
  ///
  /// Whoever asks for those takes turns with other slow work.
  package func isLongAttribute(_ name: Name) -> Bool {
    let prefix = TypeAttribute.prefix
    guard strncmp(name.bytes, prefix.utf8Start, prefix.utf8CodeUnitCount) == 0 else { return false }
    switch AttributeFamily(name) {
    case .type, .shown: return true
    default: return false
    }
  }

  /// What something is, by the name that it has now; ENODATA where it has none any more.
  func typeValue(
    _ attribute: TypeAttribute, of node: borrowing NodeTable.Reference, by caller: Caller
  ) throws(Errno) -> [UInt8] {
    let status = try node.fd.status()
    let object = try object(status, node)
    if object.hasACL { try gate.authorize(.readAttributes, on: object, by: caller) }
    guard let path = volume.kernelPath(of: node.fd), let name = path.last ?? (node.id == .root ? [] : nil)
    else { throw .ENODATA }
    let table = types(for: caller)
    // Who may not read attributes is not told of this one either.
    let hasBundleBit = object.isDirectory && finderInfo(of: node.id, by: caller)[.isPackage]
    // What could not be found or read on the way is no refusal of anything that was asked for.
    defer { _ = RefusalNote.take() }
    return name.withUnsafeBufferPointer { name in
      let type = table.type(
        table.type(of: name, TypeTable.Form(object.kind, status), hasBundleBit: hasBundleBit),
        byInfoPlist: object.isDirectory ? contents(ofDirectory: node.id, for: caller).packageType : nil)
      switch attribute {
      case .type: return Array(type.identifier.utf8)
      case .kind: return Array(table.kind(of: type).utf8)
      case .package:
        let isPackage =
          object.isDirectory
          && (table.isPackage(name, hasBundleBit: hasBundleBit)
            || table.conforms(type.identifier, to: TypeTable.package))
        return [isPackage ? UInt8(ascii: "1") : UInt8(ascii: "0")]
      }
    }
  }
}

extension TypeTable.Form {
  fileprivate init(_ kind: Object.Kind, _ status: FileStatus) {
    self =
      switch kind {
      case .file: status.st_mode & 0o111 != 0 ? .program : .file
      case .directory: .folder
      case .symlink: .link
      case .special: .special
      }
  }
}
