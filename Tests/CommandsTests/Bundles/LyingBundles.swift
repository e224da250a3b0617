// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

private let parts = SignedApp.parts
private let resources = "Contents/Resources"
private let info = "Contents/Info.plist"

extension BundleDamage {
  /// Bundles that lie: nobody signs them, and a signature that was there before makes them no better.
  static let lies: [BundleDamage] = links + things + names + infos + executables

  private static let links: [BundleDamage] = [
    .init("absolute link", .badSymlink, "\(resources)/new", saying: "an absolute path") {
      try $0.link("\(resources)/new", to: $0.full(info))
    },
    .init("link out of the bundle", .badSymlink, "\(resources)/new", saying: "it leads out of the bundle") {
      try $0.link("\(resources)/new", to: "../../../Note.entitlements")
    },
    .init("link to itself", .badSymlink, "\(resources)/new", saying: "it leads in a circle") {
      try $0.link("\(resources)/new", to: "new")
    },
    .init("links to each other", .badSymlink, "\(resources)/one", saying: "it leads in a circle") {
      try $0.link("\(resources)/one", to: "two/x")
      try $0.link("\(resources)/two", to: "one/x")
    },
    .init("link to nothing", .badSymlink, "\(resources)/new", saying: "which is not sealed or does not exist")
    {
      try $0.link("\(resources)/new", to: "nothing")
    },
    .init("link to what is not sealed", .badSymlink, "\(resources)/new", saying: "PkgInfo") {
      try $0.link("\(resources)/new", to: "../PkgInfo")
    },
    .init("link to the bundle itself", .badSymlink, "\(resources)/new", saying: "to the bundle itself") {
      try $0.link("\(resources)/new", to: "../..")
    },
    .init("Contents as a link", .notABundle, "Contents", saying: "it is not a directory") {
      try $0.moveOut("Contents")
      try $0.link("Contents", to: "../moved")
    },
    .init("Info.plist as a link", .badInfoPlist, info, saying: "it is a symbolic link") {
      try $0.moveOut(info)
      try $0.link(info, to: "../../moved")
    },
    .init("executable as a link", .badExecutable, "Contents/MacOS/Note", saying: "it is a symbolic link") {
      try $0.moveOut("Contents/MacOS/Note")
      try $0.link("Contents/MacOS/Note", to: "../../../moved")
    },
    .init("MacOS as a link", .badExecutable, "Contents/MacOS/Note", saying: "it is not a directory") {
      try $0.moveOut("Contents/MacOS")
      try $0.link("Contents/MacOS", to: "../../moved")
    },
    .init("_CodeSignature as a link", .unreadable, "Contents/_CodeSignature", saying: "it is not a directory")
    {
      if (try? $0.moveOut("Contents/_CodeSignature")) == nil { try $0.shell.temporary.makeDirectory("moved") }
      try $0.link("Contents/_CodeSignature", to: "../../moved")
    },
    .init("Resources as a link", .badSymlink, resources, saying: "it leads out of the bundle") {
      try $0.moveOut(resources)
      try $0.link(resources, to: "../../moved")
    },
  ]

  private static let things: [BundleDamage] = [
    .init("fifo", .specialFile, "\(resources)/new") { mkfifo($0.full("\(resources)/new"), 0o644) },
    .init("socket", .specialFile, "\(resources)/new") {
      #expect(mknod($0.full("\(resources)/new"), S_IFSOCK | 0o644, 0) == 0)
    },
    .init("fifo as Info.plist", .badInfoPlist, info, saying: "it is not a regular file") {
      try $0.remove(info)
      mkfifo($0.full(info), 0o644)
    },
    .init("fifo as the executable", .badExecutable, "Contents/MacOS/Note", saying: "it is not a regular file")
    {
      try $0.remove("Contents/MacOS/Note")
      mkfifo($0.full("Contents/MacOS/Note"), 0o644)
    },
    .init("directory as Info.plist", .badInfoPlist, info, saying: "it is not a regular file") {
      try $0.remove(info)
      mkdir($0.full(info), 0o755)
    },
    .init("Info.plist of 4 GB", .badInfoPlist, info, saying: "File too large") { try $0.makeHuge(info) },
    .init("deep directories", .tooDeep, "\(resources)/d/d") {
      try $0.write("", to: "\(resources)/\(String(repeating: "d/", count: 120))file")
    },
    .init(
      "bundles in bundles in bundles", .tooDeep, "Contents/PlugIns/B.bundle",
      saying: "too many levels of nested bundles"
    ) {
      var place = "Contents/PlugIns"
      for number in 0..<20 {
        place += "/B.bundle/Contents"
        try $0.write(SignedApp.info("org.example.b\(number)", executable: "b"), to: place + "/Info.plist")
        try $0.write("#!/bin/sh\n", to: place + "/MacOS/b")
        place += "/PlugIns"
      }
    },
    .init("bundle of resources that is none", .notABundle, "Contents/PlugIns/New.bundle") {
      try $0.write("", to: "Contents/PlugIns/New.bundle/file")
    },
  ]

  private static let names: [BundleDamage] = [
    .init("names that differ in case", .ambiguousNames, resources, saying: "elcome.txt") {
      try $0.write("Hello from Note.\n", to: "\(resources)/welcome.TXT")
    },
    .init("directories that differ in case", .ambiguousNames, resources) {
      try $0.write("", to: "\(resources)/Deep/file")
    },
    .init("names that differ in normalization", .ambiguousNames, resources) {
      try $0.write("", to: "\(resources)/e\u{301}")
      try $0.write("", to: "\(resources)/\u{e9}")
    },
    .init("name that is not UTF-8", .badName, resources) {
      let path = Array($0.full("\(resources)/x").utf8CString.dropLast()) + [-1, 0]
      let raw = path.withUnsafeBufferPointer { $0.baseAddress.map { creat($0, 0o644) } ?? -1 }
      #expect(close(raw) == 0)
    },
    .init("control character", .badName, "\(resources)/a?31mb", saying: "character U+009B") {
      try $0.write("", to: "\(resources)/a\u{9b}31mb")
    },
    .init("name that a terminal would obey", .badName, "\(resources)/?[31mred") {
      try $0.write("", to: "\(resources)/\u{1b}[31mred")
    },
    .init("bundle in two ways", .ambiguousShape) { try $0.write("", to: "Info.plist") },
    .init("no bundle", .notABundle, saying: "there is no Info.plist") { try $0.remove("Contents") },
  ]

  private static let infos: [BundleDamage] = [
    .init("Info.plist of nonsense", .badInfoPlist, info) { try $0.write("nonsense", to: info) },
    .init("Info.plist that is no dictionary", .badInfoPlist, info, saying: "it is not a dictionary") {
      try $0.write("<plist><array/></plist>", to: info)
    },
    .init("key that is there twice", .badInfoPlist, info, saying: "twice") {
      try $0.edit(info) {
        $0.replacing("<dict>", with: "<dict><key>CFBundleExecutable</key><string>Other</string>")
      }
    },
    .init("Info.plist nested without end", .badInfoPlist, info) {
      try $0.write("<plist>" + String(repeating: "<array>", count: 100_000), to: info)
    },
    .init("Info.plist with entities of its own", .badInfoPlist, info) {
      try $0.write(
        "<!DOCTYPE plist [<!ENTITY a SYSTEM \"/nonexistent/outside\">]><plist><dict/></plist>", to: info)
    },
    .init("identifier with a slash", .badIdentifier, info, saying: "only letters") {
      try $0.edit(info) { $0.replacing("org.example.note", with: "org.example/../note") }
    },
    .init("identifier of dots", .badIdentifier, info, saying: "between") {
      try $0.edit(info) { $0.replacing("org.example.note", with: "..") }
    },
    .init("no identifier", .badIdentifier, info, saying: "there is none") {
      try $0.edit(info) { $0.replacing("CFBundleIdentifier", with: "CFBundleOther") }
    },
  ]

  private static let executables: [BundleDamage] = [
    .init("executable outside", .badExecutable, info, saying: "is a path, not a name") {
      try $0.edit(info) { $0.replacing("<string>Note</string>", with: "<string>../../../sh</string>") }
    },
    .init("executable by its whole path", .badExecutable, info, saying: "is a path, not a name") {
      try $0.edit(info) { $0.replacing("<string>Note</string>", with: "<string>/bin/sh</string>") }
    },
    .init("executable called '..'", .badExecutable, info, saying: "can't be a file name") {
      try $0.edit(info) { $0.replacing("<string>Note</string>", with: "<string>..</string>") }
    },
    .init("executable that is missing", .badExecutable, "Contents/MacOS/Note", saying: "No such file") {
      try $0.remove("Contents/MacOS/Note")
    },
    .init("app that names no executable", .noExecutable) {
      try $0.edit(info) { $0.replacing("CFBundleExecutable", with: "CFBundleOther") }
    },
  ]

  /// What only a signature can lie about: each is signed by someone who is trusted.
  static let signedLies: [BundleDamage] = [
    .init("path that goes up", .badName, "../../../etc/file") { app in
      try app.sealAgain {
        $0.replacing("<key>Resources/Welcome.txt</key>", with: "<key>../../../etc/file</key>")
      }
    },
    .init("absolute path", .badName, "/etc/file") { app in
      try app.sealAgain { $0.replacing("<key>Resources/Welcome.txt</key>", with: "<key>/etc/file</key>") }
    },
    .init("path that is there twice", .malformedCodeResources, saying: "twice") { app in
      try app.sealAgain {
        $0.replacing("<key>Resources/deep/er/page.html</key>", with: "<key>Resources/Welcome.txt</key>")
      }
    },
    .init("paths that differ in case", .ambiguousNames, saying: "elcome.txt") { app in
      try app.sealAgain {
        $0.replacing("<key>Resources/deep/er/page.html</key>", with: "<key>Resources/WELCOME.txt</key>")
      }
    },
    .init("seal without rules", .malformedCodeResources) { app in
      try app.sealAgain { _ in "<plist><dict><key>files2</key><dict/></dict></plist>" }
    },
    .init("rule that is no pattern", .badRules) { app in
      try app.sealAgain { $0.replacing("<key>^Info\\.plist$</key>", with: "<key>(((</key>") }
    },
    .init("rule with too many states", .badRules) { app in
      try app.sealAgain {
        $0.replacing("<key>^Info\\.plist$</key>", with: "<key>(((a{250}){250}){250})</key>")
      }
    },
    .init("entitlements that are no dictionary", .badEntitlements) { app in
      let text = Array("<plist><array/></plist>".utf8)
      try app.write(text, to: parts + "CodeEntitlements")
      let digest = try Digest.whole(text)
      try app.signAgain { $0.digests[.entitlements] = digest }
    },
    .init("entitlements with a key twice", .badEntitlements, saying: "twice") { app in
      let text = Array("<plist><dict><key>a</key><true/><key>a</key><false/></dict></plist>".utf8)
      try app.write(text, to: parts + "CodeEntitlements")
      let digest = try Digest.whole(text)
      try app.signAgain { $0.digests[.entitlements] = digest }
    },
    .init("signed identifier with a slash", .badIdentifier, info) { app in
      try app.signInfo(app.text(of: info).replacing("org.example.note", with: "org/example"))
    },
    .init("requirements that nobody understands", .malformedCodeDirectory, saying: "requirements") { app in
      let digest = try Digest.whole([1])
      try app.signAgain { $0.digests[.requirements] = digest }
    },
    .init("CodeResources of 4 GB", .unreadable, parts + "CodeResources", saying: "File too large") {
      try $0.makeHuge(parts + "CodeResources")
    },
    .init("CodeDirectory of 4 GB", .unreadable, parts + "CodeDirectory", saying: "File too large") {
      try $0.makeHuge(parts + "CodeDirectory")
    },
    .init("CodeSignature of 4 GB", .unreadable, parts + "CodeSignature", saying: "File too large") {
      try $0.makeHuge(parts + "CodeSignature")
    },
    .init("CodeEntitlements of 4 GB", .unreadable, parts + "CodeEntitlements", saying: "File too large") {
      try $0.makeHuge(parts + "CodeEntitlements")
    },
    .init("CodeSignature as a fifo", .unreadable, parts + "CodeSignature", saying: "it is not a regular file")
    {
      try $0.remove(parts + "CodeSignature")
      mkfifo($0.full(parts + "CodeSignature"), 0o644)
    },
  ]
}

extension SignedApp {
  /// Moves something to beside the bundle, where a link from inside would find it whole.
  fileprivate func moveOut(_ place: String) throws {
    guard rename(full(place), shell.temporary.appending("moved")) == 0 else { throw Errno.last }
  }
}
