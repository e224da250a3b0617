// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy

// What an object is called for a person, as extended attributes that nobody sets and no list has. They are
// worked out when somebody asks, of what the caller may see and read and of nothing else.

/// An extended attribute that says how an object is shown.
enum ShownAttribute {
  /// `system.insula.name`: in the language of the daemon; `system.insula.name.de`: in German.
  case name(language: String?)
  /// `system.insula.extensions`: whether the store hides those that nothing else is said of.
  case extensions

  static let prefix: StaticString = "system.insula.name"
  static let extensionsName: StaticString = "system.insula.extensions"

  init?(_ name: Name) {
    func rest(_ other: StaticString) -> UnsafePointer<CChar>? {
      let count = other.utf8CodeUnitCount
      return strncmp(name.bytes, other.utf8Start, count) == 0 ? name.bytes + count : nil
    }
    if let rest = rest(Self.prefix), rest.pointee == 0 || rest.pointee == CChar(UInt8(ascii: ".")) {
      self = .name(language: rest.pointee == 0 ? nil : String(cString: rest + 1))
    } else if let rest = rest(Self.extensionsName), rest.pointee == 0 {
      self = .extensions
    } else {
      return nil
    }
  }

  /// Whether extensions are hidden, in words.
  static func words(hidden: Bool) -> String { hidden ? "hidden" : "shown" }
}

extension View {
  /// The value of such an attribute, which is text.
  func shownValue(
    _ attribute: ShownAttribute, of node: NodeID, by caller: Caller
  ) throws(Errno) -> [UInt8] {
    switch attribute {
    case .extensions:
      return Array(ShownAttribute.words(hidden: volume.settings.hidesExtensions).utf8)
    case .name(let language):
      var names = volume.displayNames
      if let language {
        guard let wanted = Languages(language) else { throw .ENODATA }
        names = DisplayNames(wanted)
      }
      // What could not be found or read on the way is no refusal of anything that was asked for.
      defer { _ = RefusalNote.take() }
      return Array(names.name(of: try named(node, by: caller)).sanitized.utf8)
    }
  }

  /// What is to be known of an object; ENODATA where nobody knows its name.
  private func named(_ node: NodeID, by caller: Caller) throws(Errno) -> DisplayNames.Named {
    let object = try nodes.reference(to: node)
    guard let path = volume.kernelPath(of: object.fd), let name = path.last else { throw .ENODATA }
    let status = try object.fd.status()
    let info = finderInfo(of: node, by: caller)
    let choice = ownAttribute(ExtensionChoice.attribute, ExtensionChoice.sizeLimit, of: node, by: caller)
    let text = String(decoding: name, as: UTF8.self)
    let isPackage = types(for: caller).isPackage(text, hasBundleBit: info[.isPackage])
    return DisplayNames.Named(
      text, info, isDocument: !status.isDirectory || isPackage,
      hidesExtension: volume.settings.hidesExtensions && !ExtensionChoice.isShown(choice),
      contents: status.isDirectory ? contents(ofDirectory: node, for: caller) : nil,
      isStandard: DomainTree.isLocalized(path))
  }

  /// What an object's attribute says of how it is shown, as far as the caller may read that.
  func finderInfo(of node: NodeID, by caller: Caller) -> FinderInfo {
    FinderInfo(ownAttribute(FinderInfo.attribute, FinderInfo.size, of: node, by: caller))
  }

  /// The value of an attribute of users, as the caller gets it; empty where they get none.
  private func ownAttribute(_ name: String, _ size: Int, of node: NodeID, by caller: Caller) -> [UInt8] {
    withUnsafeTemporaryAllocation(byteCount: size, alignment: 1) { buffer in
      let count = try? name.withName { (name) throws(Errno) in
        try attribute(name, of: node, into: buffer, by: caller)
      }
      return Array(buffer[..<(count ?? 0)])
    }
  }

  /// What a caller finds and may read in a directory.
  func contents(ofDirectory node: NodeID, for caller: Caller) -> DirectoryContents {
    DirectoryContents { path in
      self.found(path, in: node, by: caller) { found in found.isDirectory }
    } read: { path, limit in
      self.found(path, in: node, by: caller) { found in
        try? self.contents(of: found.node, limit: limit, by: caller)
      }
    }
  }

  private struct Found {
    let node: NodeID
    let isDirectory: Bool
  }

  /// Looks for what has a path below a directory, as the caller would, and forgets it afterwards.
  private func found<Result>(
    _ path: [String], in directory: NodeID, by caller: Caller, _ body: (Found) -> Result?
  ) -> Result? {
    var here = Found(node: directory, isDirectory: true)
    var known: [NodeID] = []
    defer { for node in known { forget(node, count: 1) } }
    for name in path {
      guard here.isDirectory,
        let entry = try? name.withName({ (name) throws(Errno) in
          try lookup(name, in: here.node, by: caller)
        }), let node = entry.node
      else { return nil }
      known.append(node)
      guard let object = try? nodes.reference(to: node, isNamed: false), let status = try? object.fd.status()
      else { return nil }
      here = Found(node: node, isDirectory: status.isDirectory)
    }
    return body(here)
  }
}
