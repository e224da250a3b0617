// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
internal import Policy

/// Something that a person has named, as far as its type depends on it.
struct ExaminedFile {
  /// Its real name.
  let name: String
  let form: TypeTable.Form
  let status: FileStatus
  private let hasBundleBit: Bool
  /// The type that a directory has by its Info.plist.
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
    ownType = form == .folder ? DirectoryContents(of: object).packageType : nil
  }

  private static func form(_ status: FileStatus, _ object: FD, _ name: String) -> TypeTable.Form {
    if status.isRegular { return status.st_mode & 0o111 != 0 ? .program : .file }
    if status.isSymlink { return .link }
    guard status.isDirectory else { return .special }
    let above = try? object.status(of: "..")
    return name.isEmpty || above.map { $0.st_dev != status.st_dev } ?? false ? .volume : .folder
  }

  /// Its type: by its name, and for a directory whose name says nothing by its Info.plist.
  func type(in table: TypeTable) -> DeclaredType {
    table.type(table.type(of: name, form, hasBundleBit: hasBundleBit), byInfoPlist: ownType)
  }

  func isPackage(in table: TypeTable) -> Bool {
    guard status.isDirectory else { return false }
    return table.isPackage(name, hasBundleBit: hasBundleBit)
      || table.conforms(type(in: table).identifier, to: TypeTable.package)
  }
}
