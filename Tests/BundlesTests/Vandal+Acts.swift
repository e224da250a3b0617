// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import Glibc
internal import LinuxIO
internal import PropertyLists
internal import TestSupport

// Each does one thing, remembers what it has touched, and says whether the rules let it pass.
extension Vandal {
  typealias Outcome = (name: String, isTolerated: Bool)

  /// What no rule seals.
  private func isOmitted(_ path: String) -> Bool {
    path.hasSuffix("/.DS_Store") || path == "Contents/PkgInfo"
      || path == "Contents/Frameworks/A.framework/PkgInfo"
  }

  /// What may be missing.
  private func isOptional(_ path: String) -> Bool {
    path.contains("/de.lproj/") || path.contains("/en.lproj/")
  }

  private mutating func pick() -> (path: String, thing: Thing) {
    things.randomElement(using: &random) ?? ("", .link(""))
  }

  private mutating func pickFile() -> (path: String, bytes: [UInt8]) {
    while true {
      let (path, thing) = pick()
      if case .file(let bytes) = thing { return (path, bytes) }
    }
  }

  mutating func flipBit() throws -> Outcome {
    var (path, bytes) = pickFile()
    guard !bytes.isEmpty else { return try flipBit() }
    touched = [path]
    let bit = Int.random(in: 0..<(bytes.count * 8), using: &random)
    bytes[bit / 8] ^= 1 << UInt8(bit % 8)
    try TestBundle.write(bytes, to: full(path))
    return ("bit \(bit) of \(path)", isOmitted(path))
  }

  mutating func cutOff() throws -> Outcome {
    let (path, bytes) = pickFile()
    guard !bytes.isEmpty else { return try cutOff() }
    touched = [path]
    let length = Int.random(in: 0..<bytes.count, using: &random)
    truncate(full(path), length)
    return ("\(path) cut off at \(length)", isOmitted(path))
  }

  mutating func lengthen() throws -> Outcome {
    let (path, bytes) = pickFile()
    touched = [path]
    try TestBundle.write(bytes + [UInt8.random(in: 0...255, using: &random)], to: full(path))
    return ("\(path) is longer", isOmitted(path))
  }

  mutating func swap() throws -> Outcome {
    let one = pickFile()
    let other = pickFile()
    guard one.bytes != other.bytes else { return try swap() }
    touched = [one.path, other.path]
    try TestBundle.write(other.bytes, to: full(one.path))
    try TestBundle.write(one.bytes, to: full(other.path))
    return ("\(one.path) and \(other.path) swapped", isOmitted(one.path) && isOmitted(other.path))
  }

  mutating func rename() throws -> Outcome {
    let (path, _) = pick()
    let directory = directories.randomElement(using: &random) ?? ""
    let name = Bool.random(using: &random) ? "n" : (path.split(separator: "/").last ?? "").uppercased()
    let target = directory.isEmpty ? name : directory + "/" + name
    guard !things.contains(where: { $0.path == target }), !directories.contains(target) else {
      return try rename()
    }
    touched = [path, target]
    guard Glibc.rename(full(path), full(target)) == 0 else { throw Errno.last }
    // The names of omitted files have no meaning elsewhere.
    let staysOmitted = isOmitted(target) || target == ".DS_Store"
    return ("\(path) renamed to \(target)", isOmitted(path) && staysOmitted)
  }

  mutating func add() throws -> Outcome {
    let directory = directories.randomElement(using: &random) ?? ""
    let path = directory.isEmpty ? "n" : directory + "/n"
    touched = [path]
    switch Int.random(in: 0..<4, using: &random) {
    case 0: symlink("f1", full(path))
    case 1: mkfifo(full(path), 0o644)
    case 2: try TestBundle.write([], to: full(path + "/n"))
    default: try TestBundle.write([1], to: full(path))
    }
    return ("\(path) added", false)
  }

  mutating func remove() -> Outcome {
    let (path, _) = pick()
    touched = [path]
    unlink(full(path))
    return ("\(path) removed", isOmitted(path) || isOptional(path))
  }

  mutating func changeType() throws -> Outcome {
    let (path, thing) = pick()
    touched = [path]
    unlink(full(path))
    let kind = Int.random(in: 0..<4, using: &random)
    switch (kind, thing) {
    case (0, .file): symlink("f1", full(path))
    case (0, .link), (1, _): try TestBundle.write([1], to: full(path + "/n"))
    case (2, _): mkfifo(full(path), 0o644)
    default:
      mkdir(full(path), 0o755)
      // No seal knows of an empty directory where nothing is sealed.
      return ("\(path) an empty directory", isOmitted(path))
    }
    return ("\(path) of another type", false)
  }

  /// Does to a part of a signature what someone would who knows what it is.
  mutating func editPart() throws -> Outcome {
    let parts = things.filter { $0.path.contains("/_CodeSignature/") }
    guard let (path, thing) = parts.randomElement(using: &random), case .file(let bytes) = thing else {
      return try flipBit()
    }
    touched = [path]
    let name = String(path.split(separator: "/").last ?? "")
    // The same part of another bundle, signed by the same hand.
    let others = parts.filter { $0.path != path && $0.path.hasSuffix("/" + name) }
    switch (Int.random(in: 0..<6, using: &random), name) {
    case (0, _):
      if case .file(let other)? = others.randomElement(using: &random)?.thing, other != bytes {
        try TestBundle.write(other, to: full(path))
        return ("\(path) of another bundle", false)
      }
      unlink(full(path))
      return ("\(path) removed", false)
    case (1, _):
      unlink(full(path))
      return ("\(path) removed", false)
    case (2, "CodeResources"), (3, "CodeResources"), (2, "CodeEntitlements"), (3, "CodeEntitlements"):
      // The same list, and other bytes.
      let list = try PropertyList(reading: bytes)
      try TestBundle.write(try list.binary(), to: full(path))
      return ("\(path) in binary", false)
    case (4, "CodeResources"), (5, "CodeResources"):
      // Without one of its entries, and so well made that only the signature tells.
      var seal = try ResourceSeal(reading: bytes)
      guard !seal.entries.isEmpty else { return try editPart() }
      seal.entries.remove(at: Int.random(in: 0..<seal.entries.count, using: &random))
      try TestBundle.write(try seal.codeResources(), to: full(path))
      return ("\(path) without an entry", false)
    case (2, "CodeSignature"), (3, "CodeSignature"):
      let signature = try bundle.identity().signature(of: [UInt8](repeating: 7, count: 88))
      try TestBundle.write(signature, to: full(path))
      return ("\(path) of something else", false)
    case (4, "CodeSignature"), (5, "CodeSignature"):
      let directory = path.dropLast(name.utf8.count) + "CodeDirectory"
      let content = try TestBundle.read(full(String(directory)))
      try TestBundle.write(try TestAuthority().signer().signature(of: content), to: full(path))
      return ("\(path) by someone whom nobody trusts", false)
    case (2..., "CodeDirectory"):
      var directory = try CodeDirectory(bytes)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: directory.identifier += "x"
      case 1: directory.team = "TEAM2"
      case 2: directory.digests[.entitlements] = nil
      default: directory.flags ^= 1
      }
      guard directory.bytes != bytes else { return try editPart() }
      try TestBundle.write(directory.bytes, to: full(path))
      return ("\(path) edited", false)
    default:
      try TestBundle.write([], to: full(path))
      return ("\(path) emptied", false)
    }
  }
}
