// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import PropertyLists

/// Something that a person has named, as far as its type depends on it.
struct ExaminedFile {
  /// Its real name.
  let name: String
  let form: TypeTable.Form
  let status: FileStatus
  private let hasBundleBit: Bool
  /// What the Info.plist of a directory says that it is, as a type.
  private let ownType: String?

  init(_ path: String, followingLinks: Bool, _ context: Context) throws {
    let object = try Self.open(path, followingLinks: followingLinks, context)
    do throws(Errno) { status = try object.fd.status() } catch {
      throw CommandFailure(error, "can't examine \(path.sanitized): \(error.message)")
    }
    name = status.isSymlink ? path.splitAtName.name : context.name(of: path)
    form = Self.form(status, object.fd, name)
    hasBundleBit = form == .folder && object.fd.finderInfo[.isPackage]
    ownType = form == .folder ? Self.ownType(object.fd) : nil
  }

  private static func open(
    _ path: String, followingLinks: Bool, _ context: Context
  ) throws(CommandFailure) -> OwnedFD {
    do throws(Errno) { return try context.openToName(path, followingLinks: followingLinks) } catch {
      throw CommandFailure(error, "can't find \(path.sanitized): \(error.messageAboutPath)")
    }
  }

  private static func form(_ status: FileStatus, _ object: FD, _ name: String) -> TypeTable.Form {
    if status.isRegular { return status.st_mode & 0o111 != 0 ? .program : .file }
    if status.isSymlink { return .link }
    guard status.isDirectory else { return .special }
    let above = try? object.status(of: "..")
    return name.isEmpty || above.map { $0.st_dev != status.st_dev } ?? false ? .volume : .folder
  }

  private static func ownType(_ directory: FD) -> String? {
    for place in ["Contents", "", "Resources"] {
      guard let bytes = try? infoPlist(in: directory, place),
        let kind = (try? PropertyList(reading: bytes))?.dictionary?["CFBundlePackageType"]?.string
      else { continue }
      let types = [
        "APPL": "com.apple.application-bundle", "FMWK": "com.apple.framework",
        "BNDL": "com.apple.generic-bundle",
      ]
      return types[kind]
    }
    return nil
  }

  private static func infoPlist(in directory: FD, _ place: String) throws(Errno) -> [UInt8] {
    if place.isEmpty { return try directory.contents(of: "Info.plist", limit: 1 << 20) }
    let found = try directory.openDirectory(place)
    return try found.fd.contents(of: "Info.plist", limit: 1 << 20)
  }

  /// Its type: by its name, and for a directory whose name says nothing by its Info.plist.
  func type(in table: TypeTable) -> DeclaredType {
    let found = table.type(of: name, form, hasBundleBit: hasBundleBit)
    guard found.identifier == "public.folder", let ownType else { return found }
    return table.type(named: ownType) ?? found
  }

  func isPackage(in table: TypeTable) -> Bool {
    guard status.isDirectory else { return false }
    return table.isPackage(name, hasBundleBit: hasBundleBit)
      || table.conforms(type(in: table).identifier, to: TypeTable.package)
  }
}
