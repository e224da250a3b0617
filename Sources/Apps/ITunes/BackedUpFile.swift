// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import PropertyLists
internal import Store

/// What a backup in iTunes' form says about a file: an object of the class `MBFile` in a keyed archive.
///
/// An archive is a list of objects that refer to each other by their places in it. Only the references that
/// are of use here are followed, one step each, so none leads around in a circle.
struct BackedUpFile {
  /// With the type.
  var mode: FileMode
  var size: Int64
  /// Seconds since 1970.
  var modified: Int64
  var changed: Int64 = 0
  var inode: UInt64 = 0
  var uid: UInt32 = 0
  var gid: UInt32 = 0
  /// Where a symbolic link leads.
  var target: String?
  /// Extended attributes, under the names that they have on a Mac.
  var attributes = PropertyList.Dictionary()

  /// The attributes that the ACL and the flags are in, as in a package of data.
  static let aclName = "com.apple.system.Security"
  static let flagsName = "org.insula.flags"

  /// The number that the table of files has for the type.
  var flags: Int64? {
    switch mode & S_IFMT {
    case S_IFREG: 1
    case S_IFDIR: 2
    case S_IFLNK: 4
    default: nil
    }
  }

  // MARK: Writing

  func archive(of path: String) throws(PropertyListError) -> [UInt8] {
    var objects: [PropertyList] = [.string("$null"), .string("")]
    func add(_ object: PropertyList) -> PropertyList {
      objects.append(object)
      return .uid(UInt64(objects.count - 1))
    }
    func described(_ names: String...) -> PropertyList {
      add(
        PropertyList(entries: [
          ("$classname", .string(names[0])), ("$classes", .array(names.map { .string($0) })),
        ]))
    }
    var fields: [(key: String, value: PropertyList)] = [
      ("RelativePath", add(.string(path))), ("Mode", .integer(Int64(mode))), ("Size", .integer(size)),
      ("LastModified", .integer(modified)), ("LastStatusChange", .integer(changed)),
      ("Birth", .integer(min(modified, changed))), ("InodeNumber", .integer(Int64(clamping: inode))),
      ("UserID", .integer(Int64(uid))),
      ("GroupID", .integer(Int64(gid))), ("Flags", .integer(0)), ("ProtectionClass", .integer(0)),
      ("$class", described("MBFile", "NSObject")),
    ]
    if let target { fields.append(("Target", add(.string(target)))) }
    if !attributes.entries.isEmpty {
      let data = PropertyList.data(try PropertyList.dictionary(attributes).binary())
      let wrapped = PropertyList(entries: [
        ("NS.data", data), ("$class", described("NSMutableData", "NSData", "NSObject")),
      ])
      fields.append(("ExtendedAttributes", add(wrapped)))
    }
    objects[1] = PropertyList(entries: fields)
    return try PropertyList(entries: [
      ("$version", .integer(100_000)), ("$archiver", .string("NSKeyedArchiver")),
      ("$top", PropertyList(entries: [("root", .uid(1))])), ("$objects", .array(objects)),
    ]).binary()
  }

}

extension BackedUpFile {
  // MARK: Reading

  /// More values than an archive of a file has.
  private static let mostValues = 10_000

  init(archive bytes: [UInt8]) throws(BackupFlaw) {
    guard bytes.starts(with: "bplist".utf8), let list = Self.list(bytes)?.dictionary,
      list["$archiver"]?.string == "NSKeyedArchiver", let objects = list["$objects"]?.array
    else { throw BackupFlaw("its description is not a keyed archive") }
    func object(_ reference: PropertyList?) -> PropertyList? {
      guard case .uid(let number)? = reference, let index = Int(exactly: number),
        objects.indices.contains(index)
      else { return nil }
      return objects[index]
    }
    guard let file = object(list["$top"]?.dictionary?["root"])?.dictionary,
      object(file["$class"])?.dictionary?["$classname"]?.string == "MBFile"
    else { throw BackupFlaw("its description is not an MBFile") }
    guard let mode = file["Mode"]?.integer.flatMap({ FileMode(exactly: $0) }), mode <= 0o177777,
      let size = file["Size"]?.integer, size >= 0, let modified = file["LastModified"]?.integer
    else { throw BackupFlaw("its description lacks a mode, size or time that could be true") }
    (self.mode, self.size, self.modified) = (mode, size, modified)
    if file["Target"] != nil {
      guard let target = object(file["Target"])?.string else { throw BackupFlaw("its target is no text") }
      self.target = target
    }
    guard let attributes = object(file["ExtendedAttributes"]), attributes.string == nil else { return }
    guard let data = attributes.data ?? attributes.dictionary?["NS.data"]?.data,
      let known = Self.list(data)?.dictionary, known.entries.allSatisfy({ $0.value.data != nil })
    else { throw BackupFlaw("its extended attributes can't be read") }
    self.attributes = known
  }

  private static func list(_ bytes: [UInt8]) -> PropertyList? {
    try? PropertyList(reading: bytes, atMost: mostValues)
  }
}

extension BackedUpFile {
  init(_ status: FileStatus) {
    self.init(
      mode: status.st_mode, size: status.isRegular ? Int64(status.st_size) : 0,
      modified: Int64(status.st_mtim.tv_sec), changed: Int64(status.st_ctim.tv_sec),
      inode: UInt64(status.st_ino), uid: status.st_uid, gid: status.st_gid)
  }
}
