// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport

/// A bundle on disk, sealed with a signature that is only remembered.
final class TestBundle {
  let directory: TemporaryDirectory
  let name: String
  let shape: CodeBundle.Shape
  /// What was signed: of the bundle itself, and by path of those in it.
  private var signed: SealedParts?

  /// The bundle's directory, and where paths in the seal begin.
  var path: String { directory.appending(name) }
  var base: String { shape == .contents ? path + "/Contents" : path }

  /// A small one with something for each rule.
  init(_ shape: CodeBundle.Shape, name: String = "Test.app") throws {
    directory = try TemporaryDirectory()
    self.name = name
    self.shape = shape
    try Self.makeSmall(at: base, shape, "org.example.test")
  }

  static func makeSmall(at base: String, _ shape: CodeBundle.Shape, _ identifier: String) throws {
    let resources = shape == .contents ? base + "/Resources" : base
    try write(Array(infoPlist(identifier).utf8), to: base + "/Info.plist")
    try write(Array("APPL????".utf8), to: base + "/PkgInfo")
    try write(
      Array("#!/bin/sh\necho hello\n".utf8), to: (shape == .contents ? base + "/MacOS" : base) + "/test")
    try write([1, 2, 3], to: resources + "/a.dat")
    try write([], to: resources + "/empty")
    try write([4, 5, 6], to: resources + "/deep/er/b.dat")
    try write([7], to: resources + "/de.lproj/text.strings")
    try write([8], to: resources + "/Base.lproj/text.strings")
    try write([9], to: resources + "/.DS_Store")
    _ = symlink("deep/er/b.dat", resources + "/link")
  }

  static func infoPlist(_ identifier: String, executable: String? = "test") -> String {
    let program = executable.map { "<key>CFBundleExecutable</key><string>\($0)</string>" } ?? ""
    return """
      <?xml version="1.0" encoding="UTF-8"?>
      <plist version="1.0"><dict><key>CFBundleIdentifier</key><string>\(identifier)</string>\(program)
      <key>CFBundleVersion</key><string>1.2</string></dict></plist>
      """
  }

  /// Writes a file and the directories above it.
  static func write(_ bytes: [UInt8], to path: String) throws {
    try makeDirectories(above: path)
    let raw = creat(path, 0o644)
    guard raw >= 0 else { throw Errno.last }
    let file = OwnedFD(owning: raw)
    try file.fd.writeAll(bytes)
  }

  static func makeDirectories(above path: String) throws {
    var above = ""
    for name in path.split(separator: "/").dropLast() {
      above += "/" + name
      guard mkdir(above, 0o755) == 0 || Errno.last == .EEXIST else { throw Errno.last }
    }
  }

  static func read(_ path: String) throws -> [UInt8] {
    let file = try path.withName { (name) throws(Errno) in try FD.cwd.openFollowing(name, O_RDONLY) }
    return try file.fd.readToEnd(limit: 1 << 24)
  }

  // MARK: Signing and judging

  static func open(_ path: String) throws -> CodeBundle {
    let parts = path.split(separator: "/")
    return try CodeBundle(in: TemporaryDirectory.open(path), name: String(parts.last ?? ""))
  }

  /// Seals it, and those in it, and remembers the parts that a signature would sign.
  func sign() throws {
    let bundle = try Self.open(path)
    let seal = try bundle.seal(nested: Self.sign)
    let bytes = try seal.codeResources()
    try Self.write(bytes, to: base + "/_CodeSignature/CodeResources")
    signed = try SealedParts(of: bundle)
  }

  /// The signature of a bundle in another is nothing but the digest of its parts.
  private static func sign(_ nested: CodeBundle) throws(Finding) -> NestedSeal {
    do {
      let bytes = try nested.seal(nested: sign).codeResources()
      try? "_CodeSignature".withName { (name) throws(Errno) in
        try nested.base.makeDirectory(name, mode: 0o755)
      }
      let place = try "_CodeSignature".withName { (name) throws(Errno) in try nested.base.openDirectory(name)
      }
      try place.fd.replaceContents(of: "CodeResources", with: bytes, mode: 0o644)
      return try seal(of: nested)
    } catch let error as Finding {
      throw error
    } catch let error as SealRefusal {
      throw error.findings[0]
    } catch {
      throw Finding(.nestedUnsigned, detail: "\(error)")
    }
  }

  private static func seal(of nested: CodeBundle) throws(Finding) -> NestedSeal {
    let parts = try SealedParts(of: nested)
    let text = "\(parts)"
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    let cdhash = (0..<20).map { UInt8(truncatingIfNeeded: hash >> UInt64($0 % 8 * 8)) }
    return NestedSeal(cdhash: cdhash, requirement: "identifier \"\(parts.identifier)\"")
  }

  /// All that is wrong with it.
  func findings() -> [Finding] {
    do {
      let bundle = try Self.open(path)
      guard let signed else { return [Finding(.noCodeResources)] }
      let parts = try SealedParts(of: bundle).findings(comparedTo: signed)
      guard let bytes = try bundle.signaturePart(SealLayout.codeResources), parts.isEmpty else {
        return parts
      }
      return try bundle.findings(against: ResourceSeal(reading: bytes), nested: Self.judge)
    } catch let error as Finding {
      return [error]
    } catch {
      return [Finding(.unreadable, detail: "\(error)")]
    }
  }

  /// What is wrong by the seal alone, whoever has made it.
  func findingsOfSeal() throws -> [Finding] {
    let bundle = try Self.open(path)
    let bytes = try bundle.signaturePart(SealLayout.codeResources) ?? []
    return try bundle.findings(against: ResourceSeal(reading: bytes), nested: Self.judge)
  }

  private static func judge(_ nested: CodeBundle, _ sealed: NestedSeal) -> [Finding] {
    do throws(Finding) {
      guard try seal(of: nested) == sealed else { return [Finding(.nestedRejected)] }
      guard let bytes = try nested.signaturePart(SealLayout.codeResources) else {
        return [Finding(.nestedUnsigned)]
      }
      return nested.findings(against: try ResourceSeal(reading: bytes), nested: judge)
    } catch {
      return [error]
    }
  }
}
