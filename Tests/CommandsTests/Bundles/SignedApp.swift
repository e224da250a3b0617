// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
@testable internal import Commands
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// An app that was made, signed and trusted by the commands, with something in it for each rule.
///
/// `Note.app` has a plug-in, `Contents/PlugIns/Help.bundle`.
final class SignedApp {
  let shell: Shell
  /// How far the clock is ahead when it is verified, in seconds.
  var ahead: Int64 = 0

  var path: String { shell.temporary.appending("Note.app") }

  init(isSigned: Bool = true) throws {
    shell = try Shell()
    try run("new-app", "Note")
    let help = "Contents/PlugIns/Help.bundle/Contents"
    for (place, text) in [
      ("Contents/Resources/deep/er/page.html", "<p>page</p>\n"),
      ("Contents/Resources/de.lproj/Words.strings", "\"a\" = \"b\";\n"),
      ("Contents/Resources/.DS_Store", "nothing"),
      ("\(help)/Info.plist", Self.info("org.example.help", executable: "Help")),
      ("\(help)/MacOS/Help", "#!/bin/sh\n"),
      ("\(help)/Resources/Help.txt", "help\n"),
    ] { try write(text, to: place) }
    try link("Contents/Resources/link", to: "deep/er/page.html")
    try run("identity", "new", "Anna", "--team", "TEAM1")
    try run("identity", "export", "Anna", "--certificate", "root.pem")
    try run("trust", "add", "root.pem")
    if isSigned { try run("sign", "Note.app", "--entitlements", "Note.entitlements") }
  }

  private func run(_ words: String...) throws {
    let result = shell.run(words)
    try #require(result.code == .ok, "\(words): \(result.errors)")
  }

  /// Verifies it at the time that was set.
  func verify(_ options: String..., bundle: String = "Note.app") -> Shell.Result {
    shell.run(["verify"] + options + [bundle], ahead: ahead)
  }

  // MARK: What is in it

  static func info(_ identifier: String, executable: String) -> String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <plist version="1.0"><dict><key>CFBundleIdentifier</key><string>\(identifier)</string>
    <key>CFBundleExecutable</key><string>\(executable)</string></dict></plist>

    """
  }

  /// The path of something in the bundle.
  func full(_ place: String) -> String { place.isEmpty ? path : path + "/" + place }

  /// Writes a file, and makes the directories above it.
  func write(_ text: String, to place: String) throws { try write(Array(text.utf8), to: place) }

  func write(_ bytes: [UInt8], to place: String) throws {
    var above = path
    for name in place.split(separator: "/").dropLast() {
      above += "/" + name
      guard mkdir(above, 0o755) == 0 || Errno.last == .EEXIST else { throw Errno.last }
    }
    let raw = creat(full(place), 0o644)
    guard raw >= 0 else { throw Errno.last }
    let file = OwnedFD(owning: raw)
    try file.fd.writeAll(bytes)
  }

  /// Makes a file of a size that nobody has room for; none of it is on the disk.
  func makeHuge(_ place: String) throws {
    try write("", to: place)
    guard truncate(full(place), 4 << 30) == 0 else { throw Errno.last }
  }

  func bytes(of place: String) throws -> [UInt8] {
    try full(place).withName { (name) throws(Errno) in
      let file = try FD.cwd.openFollowing(name, O_RDONLY)
      return try file.fd.readToEnd(limit: 1 << 24)
    }
  }

  func text(of place: String) throws -> String { String(decoding: try bytes(of: place), as: UTF8.self) }

  /// Changes a file's text.
  func edit(_ place: String, _ change: (String) -> String) throws {
    let text = try text(of: place)
    let changed = change(text)
    #expect(changed != text, "\(place) was not changed")
    try write(changed, to: place)
  }

  func link(_ place: String, to target: String) throws {
    guard symlink(target, full(place)) == 0 else { throw Errno.last }
  }

  func move(_ place: String, to target: String) throws {
    guard rename(full(place), full(target)) == 0 else { throw Errno.last }
  }

  func remove(_ place: String) throws {
    let end = place.lastIndex(of: "/")
    let above = try TemporaryDirectory.open(full(end.map { String(place[..<$0]) } ?? ""))
    let name = String(end.map { place[$0...].dropFirst() } ?? place[...])
    try name.withName { (name) throws(Errno) in try above.fd.removeTree(name) }
  }

  // MARK: Signatures that the commands would not make

  static let parts = "Contents/_CodeSignature/"

  /// The identity that has signed it, as the commands keep it.
  func identity(_ name: String = "Anna") throws -> Identity {
    let place = try TemporaryDirectory.open(shell.temporary.appending(".config/insula/identities"))
    return try IdentityDirectory(place.fd).identity(named: name)
  }

  /// Changes the code directory, and signs that.
  func signAgain(_ change: (inout CodeDirectory) -> Void) throws {
    var directory = try CodeDirectory(bytes(of: Self.parts + "CodeDirectory"))
    change(&directory)
    try write(directory.bytes, to: Self.parts + "CodeDirectory")
    try write(identity().signature(of: directory.bytes), to: Self.parts + "CodeSignature")
  }

  /// Changes the text of CodeResources, and signs that.
  func sealAgain(_ change: (String) -> String) throws {
    try edit(Self.parts + "CodeResources", change)
    let digest = try Digest.whole(bytes(of: Self.parts + "CodeResources"))
    try signAgain { $0.digests[.resources] = digest }
  }

  /// Takes another Info.plist, and signs that as it is.
  func signInfo(_ text: String) throws {
    try write(text, to: "Contents/Info.plist")
    let digest = try Digest.whole(Array(text.utf8))
    try signAgain { $0.digests[.infoPlist] = digest }
  }

  /// Signs the code directory by a certificate that the trusted root has issued for something else.
  func signByCertificate(_ change: (inout CertificatePlan) -> Void) throws {
    let place = try TemporaryDirectory.open(shell.temporary.appending(".config/insula/identities"))
    let pem = try place.fd.contents(of: "authority.pem", limit: 1 << 16)
    let root = try #require(try Certificate.all(inPEM: pem).first)
    let now = Int64(time(nil))
    var plan = CertificatePlan.signer("Someone", team: "TEAM1", from: now - 60, until: now + 86400)
    change(&plan)
    let key = try PrivateKey.generated()
    let leaf = try plan.issued(for: key, by: root, with: PrivateKey.reading(pem: pem))
    let message = try SignedMessage.signing(
      bytes(of: Self.parts + "CodeDirectory"), with: key, chain: [leaf])
    try write(message.encoded(), to: Self.parts + "CodeSignature")
  }
}
