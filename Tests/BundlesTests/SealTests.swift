// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Each row of what can be found about a sealed bundle.
@Suite struct SealTests {
  /// Something that happens to a bundle after it was signed; `base` is where its paths begin.
  struct Damage: Sendable, CustomTestStringConvertible {
    let name: String
    let expected: [String]
    let act: @Sendable (_ base: String, _ resources: String) throws -> Void
    var shapes: [CodeBundle.Shape] = [.contents, .flat]

    init(
      _ name: String, _ expected: [String], only shape: CodeBundle.Shape? = nil,
      _ act: @escaping @Sendable (String, String) throws -> Void
    ) {
      self.name = name
      self.expected = expected
      self.act = act
      if let shape { shapes = [shape] }
    }

    var testDescription: String { name }
  }

  /// `R/` stands for the place of resources, `C/` for where the seal's paths begin.
  static let damages: [Damage] = [
    Damage("nothing", []) { _, _ in },
    Damage("file added", ["added R/new"]) { _, r in try TestBundle.write([1], to: r + "/new") },
    Damage("file added below", ["added R/deep/er/new"]) { _, r in
      try TestBundle.write([], to: r + "/deep/er/new")
    },
    Damage("link added", ["added R/new"]) { _, r in symlink("a.dat", r + "/new") },
    Damage("bundle added", ["added C/PlugIns/New.bundle"], only: .contents) { b, _ in
      try TestBundle.makeSmall(at: b + "/PlugIns/New.bundle", .flat, "org.example.new")
    },
    Damage("tool added", ["added C/MacOS/tool"], only: .contents) { b, _ in
      try TestBundle.write([1], to: b + "/MacOS/tool")
    },
    Damage("hidden file added", ["added C/.hidden"]) { b, _ in try TestBundle.write([1], to: b + "/.hidden")
    },
    Damage("CodeResources beside the signature", ["added C/CodeResources"]) { b, _ in
      try TestBundle.write([1], to: b + "/CodeResources")
    },
    Damage("file changed", ["changed R/a.dat"]) { _, r in try TestBundle.write([1, 2, 4], to: r + "/a.dat") },
    Damage("file cut off", ["changed R/a.dat"]) { _, r in truncate(r + "/a.dat", 2) },
    Damage("file filled", ["changed R/empty"]) { _, r in try TestBundle.write([1], to: r + "/empty") },
    Damage("optional file changed", ["changed R/de.lproj/text.strings"]) { _, r in
      try TestBundle.write([1], to: r + "/de.lproj/text.strings")
    },
    Damage("file becomes a link", ["typeChanged R/a.dat"]) { _, r in
      unlink(r + "/a.dat")
      symlink("deep/er/b.dat", r + "/a.dat")
    },
    Damage("file becomes a directory", ["added R/a.dat/x", "typeChanged R/a.dat"]) { _, r in
      unlink(r + "/a.dat")
      try TestBundle.write([1], to: r + "/a.dat/x")
    },
    Damage("file becomes an empty directory", ["typeChanged R/empty"]) { _, r in
      unlink(r + "/empty")
      mkdir(r + "/empty", 0o755)
    },
    Damage("link becomes a file", ["typeChanged R/link"]) { _, r in
      unlink(r + "/link")
      try TestBundle.write([4, 5, 6], to: r + "/link")
    },
    Damage("link leads elsewhere", ["symlinkChanged R/link"]) { _, r in
      unlink(r + "/link")
      symlink("a.dat", r + "/link")
    },
    Damage("file missing", ["missing R/a.dat"]) { _, r in unlink(r + "/a.dat") },
    Damage("link missing", ["missing R/link"]) { _, r in unlink(r + "/link") },
    Damage("directory missing", ["badSymlink R/link", "missing R/deep/er/b.dat"]) { _, r in
      unlink(r + "/deep/er/b.dat")
      rmdir(r + "/deep/er")
      rmdir(r + "/deep")
    },
    Damage("base localization missing", ["missing R/Base.lproj/text.strings"]) { _, r in
      unlink(r + "/Base.lproj/text.strings")
    },
    Damage("optional file missing", []) { _, r in
      unlink(r + "/de.lproj/text.strings")
      rmdir(r + "/de.lproj")
    },
    Damage("omitted files added, changed, missing", []) { b, r in
      try TestBundle.write([1], to: b + "/PkgInfo")
      unlink(r + "/.DS_Store")
      try TestBundle.write([1], to: r + "/deep/.DS_Store")
      try TestBundle.write([1], to: b + "/_MASReceipt/receipt")
    },
    Damage("omitted file becomes a link", ["badSymlink R/.DS_Store"]) { _, r in
      unlink(r + "/.DS_Store")
      symlink("a.dat", r + "/.DS_Store")
    },
    Damage("directory added", []) { _, r in mkdir(r + "/nothing-in-it", 0o755) },
    Damage("modes and times changed", []) { _, r in chmod(r + "/a.dat", 0o600) },
    Damage("other attribute added", []) { _, r in
      #expect(setxattr(r + "/a.dat", "user.com.apple.metadata:kMDItemWhereFroms", "x", 1, 0) == 0)
    },
    Damage("no CodeResources", ["noCodeResources -"]) { b, _ in unlink(b + "/_CodeSignature/CodeResources") },
    Damage("no signature", ["noCodeResources -"]) { b, _ in
      unlink(b + "/_CodeSignature/CodeResources")
      rmdir(b + "/_CodeSignature")
    },
    Damage("CodeResources changed", ["codeResourcesAltered -"]) { b, _ in
      let path = b + "/_CodeSignature/CodeResources"
      try TestBundle.write(TestBundle.read(path) + [0x0a], to: path)
    },
    Damage("CodeResources becomes a link", ["unreadable C/_CodeSignature/CodeResources"]) { b, _ in
      rename(b + "/_CodeSignature/CodeResources", b + "/../moved")
      symlink("../../moved", b + "/_CodeSignature/CodeResources")
    },
    Damage("Info.plist changed", ["infoPlistAltered -"]) { b, _ in
      let text = String(decoding: try TestBundle.read(b + "/Info.plist"), as: UTF8.self)
      try TestBundle.write(Array((text + "\n").utf8), to: b + "/Info.plist")
    },
    Damage("entitlements added", ["entitlementsAltered -"]) { b, _ in
      try TestBundle.write([1], to: b + "/_CodeSignature/CodeEntitlements")
    },
    Damage("executable changed", ["executableAltered -"]) { b, r in
      let path = (b == r ? b : b + "/MacOS") + "/test"
      try TestBundle.write(TestBundle.read(path) + [0x0a], to: path)
    },
    Damage("executable becomes a link", ["badExecutable C/MacOS/test"], only: .contents) { b, _ in
      rename(b + "/MacOS/test", b + "/MacOS/other")
      symlink("other", b + "/MacOS/test")
    },
    Damage("executable missing", ["badExecutable C/MacOS/test"], only: .contents) { b, _ in
      unlink(b + "/MacOS/test")
    },
    Damage("beside Contents", ["unsealedRoot new"], only: .contents) { b, _ in
      try TestBundle.write([1], to: b + "/../new")
    },
    Damage("what may be beside Contents", [], only: .contents) { b, _ in
      for name in [".DS_Store", ".LSOverride", "Icon\r", ".SoftwareDepot.tracking"] {
        try TestBundle.write([1], to: b + "/../" + name)
      }
    },
    Damage("a link that may be beside Contents as a file", ["unsealedRoot .DS_Store"], only: .contents) {
      b, _ in
      symlink("Contents", b + "/../.DS_Store")
    },
    Damage("guest in the signature", ["guestInSignature C/_CodeSignature/guest"]) { b, _ in
      try TestBundle.write([1], to: b + "/_CodeSignature/guest")
    },
    Damage("directory as a part of the signature", ["guestInSignature C/_CodeSignature/CodeRequirements"]) {
      b, _ in
      mkdir(b + "/_CodeSignature/CodeRequirements", 0o755)
    },
    Damage("link to the signature", []) { b, _ in
      symlink("_CodeSignature/CodeResources", b + "/CodeResources")
    },
    Damage("resource fork", ["sideband R/a.dat"]) { _, r in
      #expect(setxattr(r + "/a.dat", "user.com.apple.ResourceFork", "x", 1, 0) == 0)
    },
    Damage("Finder information", ["sideband R/a.dat"]) { _, r in
      #expect(setxattr(r + "/a.dat", "user.com.apple.FinderInfo", "x", 1, 0) == 0)
    },
    Damage("fifo", ["specialFile R/pipe"]) { _, r in mkfifo(r + "/pipe", 0o644) },
    Damage("file becomes a fifo", ["specialFile R/a.dat"]) { _, r in
      unlink(r + "/a.dat")
      mkfifo(r + "/a.dat", 0o644)
    },
    Damage("name in another case", ["added R/A.DAT", "ambiguousNames R/*"]) { _, r in
      try TestBundle.write([1, 2, 3], to: r + "/A.DAT")
    },
    Damage("file in another case", ["added R/A.dat", "missing R/a.dat"]) { _, r in
      rename(r + "/a.dat", r + "/A.dat")
    },
    Damage("name that is not UTF-8", ["badName R/*"]) { _, r in
      let path = Array((r + "/").utf8CString.dropLast()) + [-1, 0]
      close(path.withUnsafeBufferPointer { $0.baseAddress.map { creat($0, 0o644) } ?? -1 })
    },
    Damage("name with a line end", ["badName R/*"]) { _, r in
      try TestBundle.write([], to: "\(r)/a\nb")
    },
    Damage("name with a tabulator", ["badName R/*"]) { _, r in
      try TestBundle.write([], to: "\(r)/a\tb")
    },
    Damage("directory with a carriage return", ["badName R/*"]) { _, r in
      try TestBundle.write([], to: "\(r)/a\rb/file")
    },
    Damage("name with a control character of two bytes", ["badName R/*"]) { _, r in
      try TestBundle.write([], to: "\(r)/a\u{9b}31mb")
    },
    Damage("name with a delete character", ["badName R/*"]) { _, r in
      try TestBundle.write([], to: "\(r)/a\u{7f}b")
    },
    Damage("name with a control character", ["badName R/*"]) { _, r in
      try TestBundle.write([], to: r + "/a\u{1}b")
    },
    Damage("very deep", ["tooDeep R/*"]) { _, r in
      try TestBundle.write([], to: r + "/" + String(repeating: "d/", count: 150) + "file")
    },
  ]

  @Test(arguments: damages)
  func tamperingIsFound(damage: Damage) throws {
    for shape in damage.shapes {
      let bundle = try TestBundle(shape)
      try bundle.sign()
      let resources = shape == .contents ? bundle.base + "/Resources" : bundle.base
      try damage.act(bundle.base, resources)
      let findings = bundle.findings()
      let base = shape == .contents ? "Contents/" : ""
      let expected = damage.expected.map {
        let words = $0.split(separator: " ", maxSplits: 1).map(String.init)
        let place = words[1].replacing("C/", with: base).replacing(
          "R/", with: shape == .contents ? base + "Resources/" : "")
        return (words[0], words[1] == "-" ? "" : place)
      }
      let found = findings.map { "\($0.kind) \($0.path)" }.sorted()
      #expect(found.count == expected.count, "\(damage.name): \(findings.map(\.message))")
      for (one, (kind, place)) in zip(found, expected.map { $0 }.sorted { $0.0 + $0.1 < $1.0 + $1.1 }) {
        let pattern = "\(kind) \(place)"
        let isMatch = place.hasSuffix("*") ? one.hasPrefix(pattern.dropLast()) : one == pattern
        #expect(isMatch, "\(damage.name): \(one) and not \(pattern)")
      }
      for finding in findings {
        #expect(
          finding.message.contains(finding.path) && finding.message.hasSuffix("[\(finding.kind.appleCode)]"))
      }
    }
  }

  /// Each kind of finding has Apple's number, as the table has it.
  @Test(
    arguments: [
      (.added, -67054), (.changed, -67054), (.typeChanged, -67054), (.symlinkChanged, -67054),
      (.missing, -67054), (.noCodeResources, -67056),
      (.codeResourcesAltered, -67023), (.infoPlistAltered, -67030), (.nestedRejected, -67021),
      (.nestedUnsigned, -67062), (.executableAltered, -67061),
      (.unsealedRoot, -67014), (.guestInSignature, -67014), (.weakRules, -67013), (.badSymlink, -67003),
      (.sideband, -66999), (.specialFile, -67016),
    ] as [(Finding.Kind, Int32)])
  func findingsHaveApplesNumbers(kind: Finding.Kind, code: Int32) {
    #expect(kind.appleCode == code)
  }

  @Test func everyKindHasItsOwnSentence() {
    #expect(Set(Finding.Kind.allCases.map(\.sentence)).count == Finding.Kind.allCases.count)
  }
}
