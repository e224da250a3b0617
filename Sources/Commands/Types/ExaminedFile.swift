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

  /// What is at a path; a link is examined itself.
  init(_ path: String, _ context: Context) throws {
    do throws(Errno) {
      let object = try context.openToName(path, followingLinks: false)
      let status = try object.fd.status()
      let name = status.isSymlink ? path.splitAtName.name : context.name(of: path)
      self.init(object.fd, status, called: name)
    } catch {
      throw CommandFailure(error, "can't find \(path.sanitized): \(error.messageAboutPath)")
    }
  }

  /// What was found, as it was called then.
  init(_ found: FoundObject) throws(Errno) {
    self = try found.object.use { (object) throws(Errno) in
      ExaminedFile(object, found.status, called: found.name)
    }
  }

  private init(_ object: FD, _ status: FileStatus, called name: String) {
    self.status = status
    self.name = name
    form = Self.form(status, object, name)
    hasBundleBit = form == .folder && object.finderInfo[.isPackage]
    ownType = form == .folder ? Self.ownType(object) : nil
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
