// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport

/// Damages a signed bundle, in which others are, and repairs it again.
struct Vandal {
  /// What is done.
  enum Act: String, CaseIterable {
    case flipBit = "a bit is turned"
    case cutOff = "a file is cut off"
    case lengthen = "a file is longer"
    case swap = "two files are swapped"
    case rename = "a file is renamed"
    case add = "something is added"
    case remove = "a file is removed"
    case changeType = "a file becomes something else"
    case editPart = "a part of a signature is edited"
  }

  /// What was done, and whether the rules let it pass.
  struct Damage {
    let act: Act
    let name: String
    let isTolerated: Bool
  }

  enum Thing {
    case file([UInt8])
    case link(String)
  }

  let bundle: SignedTestBundle
  var random: SeededRandom
  /// What there is when all is well, by path from the bundle's directory.
  private(set) var things: [(path: String, thing: Thing)] = []
  private(set) var directories: [String] = [""]
  /// What the last damage has touched.
  var touched: [String] = []

  init(seed: UInt64) throws {
    random = SeededRandom(seed: seed)
    bundle = try SignedTestBundle()
    let base = bundle.directory.appending("Note.app/Contents")
    for number in 0..<180 {
      let place = [
        "Resources", "Resources/de.lproj", "Resources/x/y", "MacOS", "Frameworks", "Resources/Base.lproj",
        "Other", "PlugIns/Help.bundle/Contents/Resources",
      ][number % 8]
      let bytes = (0..<Int.random(in: 20..<200, using: &random)).map { _ in
        UInt8(truncatingIfNeeded: random.next())
      }
      try TestBundle.write(bytes, to: base + "/\(place)/f\(number)")
    }
    for place in ["Resources", "PlugIns/Help.bundle/Contents/Resources"] {
      try TestBundle.write([9], to: base + "/\(place)/.DS_Store")
    }
    try TestBundle.write(Array("APPL????".utf8), to: base + "/PkgInfo")
    try TestBundle.makeSmall(at: base + "/Frameworks/A.framework", .flat, "org.example.framework")
    // Those inside keep what they are entitled to.
    try bundle.sign("Note.app/Contents/PlugIns/Help.bundle")
    try bundle.sign()
    try remember("")
  }

  private mutating func remember(_ directory: String) throws {
    for name in try bundle.directory.names(in: "Note.app/" + directory) {
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

  var fileCount: Int { things.count }

  func full(_ path: String) -> String { bundle.directory.appending("Note.app/" + path) }

  /// What is wrong now.
  func findings() -> [Finding] {
    do {
      let verification = try bundle.verify()
      // Good and without findings must be the same.
      guard verification.isGood == verification.findings.isEmpty else { return [Finding(.unreadable)] }
      return verification.findings
    } catch {
      return [error as? Finding ?? Finding(.unreadable, detail: "\(error)")]
    }
  }

  mutating func damage() throws -> Damage {
    // Parts of signatures are few among so many files, and bits are what there is most of.
    let weights: [(Act, Int)] = Act.allCases.map { ($0, $0 == .flipBit ? 3 : $0 == .editPart ? 2 : 1) }
    var number = Int.random(in: 0..<weights.reduce(0) { $0 + $1.1 }, using: &random)
    for (act, weight) in weights {
      if number < weight { return try damage(by: act) }
      number -= weight
    }
    return try damage(by: .flipBit)
  }

  private mutating func damage(by act: Act) throws -> Damage {
    let (name, isTolerated) =
      switch act {
      case .flipBit: try flipBit()
      case .cutOff: try cutOff()
      case .lengthen: try lengthen()
      case .swap: try swap()
      case .rename: try rename()
      case .add: try add()
      case .remove: remove()
      case .changeType: try changeType()
      case .editPart: try editPart()
      }
    return Damage(act: act, name: name, isTolerated: isTolerated)
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
