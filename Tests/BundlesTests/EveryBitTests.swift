// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Random damage to a bundle of two hundred files: all of it is found, and nothing else.
@Suite struct EveryBitTests {
  /// All damages of a run; `make fuzz` does twenty thousand.
  static let damages = getenv("INSULA_DAMAGES").flatMap { Int(String(cString: $0)) } ?? 300

  @Test(arguments: [1, 2] as [UInt64])
  func everyDamageIsFound(seed: UInt64) throws {
    var vandal = try Vandal(seed: seed)
    #expect(vandal.bundle.findings().isEmpty)
    var found = 0
    for number in 0..<(Self.damages / 2) {
      let damage = try vandal.damage()
      let findings = vandal.bundle.findings()
      #expect(
        findings.isEmpty == damage.isTolerated, "\(number): \(damage.name): \(findings.map(\.message))")
      found += findings.isEmpty ? 0 : 1
      try vandal.repair()
    }
    #expect(found > Self.damages / 3)
    #expect(vandal.bundle.findings().isEmpty)
  }
}

/// Damages a bundle and repairs it again.
private struct Vandal {
  enum Thing {
    case file([UInt8])
    case link(String)
  }

  let bundle: TestBundle
  private var random: SeededRandom
  /// What there is when all is well, by path from the bundle's directory, and the directories.
  private var things: [(path: String, thing: Thing)] = []
  private var directories: [String] = [""]
  /// What the last damage has touched.
  private var touched: [String] = []

  init(seed: UInt64) throws {
    random = SeededRandom(seed: seed)
    bundle = try TestBundle(.contents)
    for number in 0..<180 {
      let place = [
        "Resources", "Resources/de.lproj", "Resources/x/y", "MacOS", "Frameworks", "Resources/Base.lproj",
        "Other",
      ][number % 7]
      let bytes = (0..<Int.random(in: 20..<200, using: &random)).map { _ in
        UInt8(truncatingIfNeeded: random.next())
      }
      try TestBundle.write(bytes, to: bundle.base + "/\(place)/f\(number)")
    }
    try TestBundle.makeSmall(at: bundle.base + "/Frameworks/A.framework", .flat, "org.example.framework")
    try TestBundle.write(
      Array("<plist><dict/></plist>".utf8), to: bundle.base + "/_CodeSignature/CodeEntitlements")
    try bundle.sign()
    try remember("")
  }

  private mutating func remember(_ directory: String) throws {
    for name in try bundle.directory.names(in: bundle.name + "/" + directory) {
      let path = directory.isEmpty ? name : directory + "/" + name
      var status = stat()
      guard lstat(full(path), &status) == 0 else { throw Errno.last }
      switch status.st_mode & S_IFMT {
      case S_IFDIR:
        directories.append(path)
        try remember(path)
      case S_IFLNK:
        let above = try TemporaryDirectory.open(full(directory))
        let target = try name.withName { (name) throws(Errno) in try above.fd.linkTarget(of: name) }
        things.append((path, .link(String(decoding: target, as: UTF8.self))))
      default: things.append((path, .file(try TestBundle.read(full(path)))))
      }
    }
  }

  private func full(_ path: String) -> String { bundle.path + "/" + path }

  /// What no rule seals.
  private func isOmitted(_ path: String) -> Bool {
    path.hasSuffix("/.DS_Store") || path == "Contents/PkgInfo"
      || path == "Contents/Frameworks/A.framework/PkgInfo"
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

  /// Does something; says whether the rules let it pass.
  mutating func damage() throws -> (name: String, isTolerated: Bool) {
    switch Int.random(in: 0..<10, using: &random) {
    case 0...2: return try flipBit()
    case 3: return try cutOff()
    case 4: return try swap()
    case 5: return try rename()
    case 6: return try add()
    case 7: return remove()
    case 8: return try changeType()
    default: return try lengthen()
    }
  }

  private mutating func flipBit() throws -> (String, Bool) {
    var (path, bytes) = pickFile()
    guard !bytes.isEmpty else { return try flipBit() }
    touched = [path]
    let bit = Int.random(in: 0..<(bytes.count * 8), using: &random)
    bytes[bit / 8] ^= 1 << UInt8(bit % 8)
    try TestBundle.write(bytes, to: full(path))
    return ("bit \(bit) of \(path)", isOmitted(path))
  }

  private mutating func cutOff() throws -> (String, Bool) {
    let (path, bytes) = pickFile()
    guard !bytes.isEmpty else { return try cutOff() }
    touched = [path]
    let length = Int.random(in: 0..<bytes.count, using: &random)
    truncate(full(path), length)
    return ("\(path) cut off at \(length)", isOmitted(path))
  }

  private mutating func lengthen() throws -> (String, Bool) {
    let (path, bytes) = pickFile()
    touched = [path]
    try TestBundle.write(bytes + [UInt8.random(in: 0...255, using: &random)], to: full(path))
    return ("\(path) is longer", isOmitted(path))
  }

  private mutating func swap() throws -> (String, Bool) {
    let one = pickFile()
    let other = pickFile()
    guard one.bytes != other.bytes else { return try swap() }
    touched = [one.path, other.path]
    try TestBundle.write(other.bytes, to: full(one.path))
    try TestBundle.write(one.bytes, to: full(other.path))
    return ("\(one.path) and \(other.path) swapped", isOmitted(one.path) && isOmitted(other.path))
  }

  private mutating func rename() throws -> (String, Bool) {
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

  private mutating func add() throws -> (String, Bool) {
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

  private mutating func remove() -> (String, Bool) {
    let (path, _) = pick()
    touched = [path]
    unlink(full(path))
    return ("\(path) removed", isOmitted(path) || path.contains("/de.lproj/"))
  }

  private mutating func changeType() throws -> (String, Bool) {
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

  /// Puts back what was there.
  mutating func repair() throws {
    for path in touched {
      let name = String(path.split(separator: "/").last ?? "")
      let parent = try TemporaryDirectory.open(full(String(path.dropLast(name.utf8.count))))
      try? name.withName { (name) throws(Errno) in try parent.fd.removeTree(name) }
      for (other, thing) in things where other == path {
        switch thing {
        case .file(let bytes): try TestBundle.write(bytes, to: full(path))
        case .link(let target): symlink(target, full(path))
        }
      }
    }
    touched = []
  }
}
