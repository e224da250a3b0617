// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A small app, made for one test: `Note.app` with a plug-in that has a plug-in, and an identity that is
/// trusted.
final class SignedTestBundle {
  let directory: TemporaryDirectory
  let authority: TestAuthority
  private let identityPEM: [UInt8]

  static let entitlements = text(["com.apple.security.app-sandbox": "<true/>"])

  init(shape: CodeBundle.Shape = .contents, hasPlugIns: Bool = true) throws {
    directory = try TemporaryDirectory()
    authority = try TestAuthority()
    let signer = try authority.signer()
    var pem = try signer.key.pem()
    for certificate in signer.chain { pem += try certificate.pem() }
    identityPEM = pem

    let base = shape == .contents ? "Note.app/Contents" : "Note.app"
    let executable = shape == .contents ? "\(base)/MacOS/note" : "\(base)/note"
    let resources = shape == .contents ? "\(base)/Resources" : base
    try make("\(base)/Info.plist", Self.info("org.example.note", executable: "note"))
    try make(executable, "#!/bin/sh\necho note\n")
    try make("\(resources)/page.html", "<p>page</p>\n")
    try make("\(resources)/en.lproj/words.txt", "words\n")
    symlink("page.html", directory.appending("\(resources)/first.html"))
    guard hasPlugIns else { return }
    let plugIn = "\(base)/PlugIns/Help.bundle"
    try make("\(plugIn)/Contents/Info.plist", Self.info("org.example.help", executable: "help"))
    try make("\(plugIn)/Contents/MacOS/help", "#!/bin/sh\necho help\n")
    try make(
      "\(plugIn)/Contents/PlugIns/Deep.bundle/Info.plist", Self.info("org.example.deep", executable: "deep"))
    try make("\(plugIn)/Contents/PlugIns/Deep.bundle/deep", "#!/bin/sh\necho deep\n")
  }

  /// Makes a file and the directories above it.
  func make(_ path: String, _ text: String) throws {
    var above = ""
    for name in path.split(separator: "/").dropLast() {
      above += above.isEmpty ? String(name) : "/\(name)"
      mkdir(directory.appending(above), 0o755)
    }
    try directory.write(text, to: path)
  }

  static func info(_ identifier: String, executable: String) -> String {
    text([
      "CFBundleIdentifier": "<string>\(identifier)</string>",
      "CFBundleExecutable": "<string>\(executable)</string>",
      "CFBundleVersion": "<string>1</string>",
    ])
  }

  static func text(_ entries: [String: String]) -> String {
    let lines = entries.sorted { $0.key < $1.key }.map { "<key>\($0.key)</key>\($0.value)\n" }.joined()
    return
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><dict>\n\(lines)</dict></plist>\n"
  }

  func open(_ name: String = "Note.app") throws -> CodeBundle {
    try CodeBundle(in: TemporaryDirectory.open(directory.appending(name)), name: name)
  }

  func identity() throws -> Identity { try Identity.reading(pem: identityPEM, name: "Someone") }

  @discardableResult
  func sign(_ name: String = "Note.app", entitlements: String? = SignedTestBundle.entitlements) throws
    -> NestedSeal
  {
    try open(name).sign(as: identity(), entitlements: entitlements.map { Array($0.utf8) }, at: testTime)
  }

  func verify(_ name: String = "Note.app") throws -> Verification {
    try open(name).verify(authority.trust, at: testTime, includingStrangers: true)
  }

  /// What is found, each as its kind and place.
  func findings() throws -> [String] { try verify().findings.map { "\($0.kind) \($0.path)" } }

  func bytes(of path: String) throws -> [UInt8] {
    let file = try path.withName { (name) throws(Errno) in
      try FD.cwd.openFollowing(name, O_RDONLY)
    }
    return try file.fd.readToEnd(limit: 1 << 24)
  }

  /// Writes a part of the signature of `Note.app/Contents`.
  func write(_ bytes: [UInt8], toPart name: String) throws {
    let signature = try TemporaryDirectory.open(directory.appending("Note.app/Contents/_CodeSignature"))
    try signature.fd.replaceContents(of: name, with: bytes, mode: 0o644)
  }

  func part(_ name: String) throws -> [UInt8] {
    try bytes(of: directory.appending("Note.app/Contents/_CodeSignature/\(name)"))
  }

  /// Changes the code directory, and signs that.
  func signAgain(_ change: (inout CodeDirectory) -> Void) throws {
    var sealed = try CodeDirectory(part("CodeDirectory"))
    change(&sealed)
    try write(sealed.bytes, toPart: "CodeDirectory")
    try write(identity().signature(of: sealed.bytes), toPart: "CodeSignature")
  }
}
