// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import CLinux
@testable internal import Commands
internal import Glibc
internal import LinuxIO
internal import Testing

/// Something that may be wrong with a bundle, and what is said of it.
struct BundleDamage: CustomTestStringConvertible, Sendable {
  let name: String
  /// The first finding; nil for what the rules let pass.
  let kind: Finding.Kind?
  /// The path that the message names, from the bundle's directory on.
  let place: String
  /// What else is in the message.
  let word: String
  let act: @Sendable (SignedApp) throws -> Void

  var testDescription: String { name }

  init(
    _ name: String, _ kind: Finding.Kind?, _ place: String = "", saying word: String = "",
    _ act: @escaping @Sendable (SignedApp) throws -> Void
  ) {
    self.name = name
    self.kind = kind
    self.place = place
    self.word = word
    self.act = act
  }
}

private let parts = SignedApp.parts
private let help = "Contents/PlugIns/Help.bundle/Contents"
private let welcome = "Contents/Resources/Welcome.txt"

extension BundleDamage {
  /// What happens to a bundle after it was signed: the table of outcomes, row by row.
  static let afterSigning: [BundleDamage] = files + signatures + partsOfSignature + nested

  private static let files: [BundleDamage] = [
    .init("file added", .added, "Contents/Resources/new") { try $0.write("", to: "Contents/Resources/new") },
    .init("name with a line end", .badName, "Contents/Resources/a?b", saying: "character U+000A") {
      try $0.write("", to: "Contents/Resources/a\nb")
    },
    .init("file changed", .changed, welcome) { try $0.edit(welcome) { $0 + "." } },
    .init("file empty", .changed, welcome) { try $0.write("", to: welcome) },
    .init("file becomes a link", .typeChanged, welcome) {
      try $0.remove(welcome)
      try $0.link(welcome, to: "deep/er/page.html")
    },
    .init("link becomes a file", .typeChanged, "Contents/Resources/link") {
      try $0.remove("Contents/Resources/link")
      try $0.write("<p>page</p>\n", to: "Contents/Resources/link")
    },
    .init("link leads elsewhere", .symlinkChanged, "Contents/Resources/link", saying: "'Welcome.txt'") {
      try $0.remove("Contents/Resources/link")
      try $0.link("Contents/Resources/link", to: "Welcome.txt")
    },
    .init("file missing", .missing, welcome) { try $0.remove(welcome) },
    .init("optional file missing", nil) { try $0.remove("Contents/Resources/de.lproj") },
    .init("omitted files added, changed and missing", nil) {
      try $0.write("changed", to: "Contents/PkgInfo")
      try $0.remove("Contents/Resources/.DS_Store")
      try $0.write("new", to: "Contents/Resources/deep/.DS_Store")
    },
    .init("modes, times and other attributes", nil) {
      chmod($0.full(welcome), 0o600)
      utimes($0.full(welcome), [timeval(tv_sec: 1, tv_usec: 0), timeval(tv_sec: 1, tv_usec: 0)])
      #expect(setxattr($0.full(welcome), "user.com.example.other", "x", 1, 0) == 0)
    },
    .init("beside Contents", .unsealedRoot, "new") { try $0.write("", to: "new") },
    .init("what may be beside Contents", nil) { try $0.write("", to: ".DS_Store") },
    .init("resource fork", .sideband, welcome) {
      #expect(setxattr($0.full(welcome), "user.com.apple.ResourceFork", "x", 1, 0) == 0)
    },
    .init("Info.plist changed", .infoPlistAltered, "Contents/Info.plist") {
      try $0.edit("Contents/Info.plist") { $0 + "\n" }
    },
    .init("executable changed", .executableAltered, "Contents/MacOS/Note") {
      try $0.edit("Contents/MacOS/Note") { $0 + "#\n" }
    },
    .init("executable empty", .executableAltered, "Contents/MacOS/Note") {
      try $0.write("", to: "Contents/MacOS/Note")
    },
  ]

  private static let signatures: [BundleDamage] = [
    .init("no signature at all", .unsigned) { try $0.remove("Contents/_CodeSignature") },
    .init("no CodeSignature", .malformedSignature, saying: "it is missing") {
      try $0.remove(parts + "CodeSignature")
    },
    .init("CodeSignature of nothing", .malformedSignature) { try $0.write("", to: parts + "CodeSignature") },
    .init("signature of something else", .signatureMismatch) {
      try $0.write($0.identity().signature(of: [1]), to: parts + "CodeSignature")
    },
    .init("signature of another bundle", .otherBundle, saying: "'org.example.other'") {
      try $0.signAgain { $0.identifier = "org.example.other" }
    },
    .init("root that is no longer trusted", .untrusted, saying: "'Anna'") {
      let fingerprint = try #require(try $0.identity().chain.last).fingerprintText
      #expect($0.shell.run("trust", "remove", fingerprint).code == .ok)
    },
    .init("signer of another root", .untrusted, saying: "'Bert'") {
      let other = try SignedApp(isSigned: false)
      #expect(other.shell.run("identity", "new", "Bert", "--team", "TEAM1").code == .ok)
      let signature = try other.identity("Bert").signature(of: $0.bytes(of: parts + "CodeDirectory"))
      try $0.write(signature, to: parts + "CodeSignature")
    },
    .init("certificate that has expired", .expired, saying: "'Anna' on") { $0.ahead = 6 * 365 * 86400 },
    .init("certificate that is not valid yet", .notYetValid, saying: "from") { $0.ahead = -2 * 86400 },
    .init("certificate for servers", .wrongPurpose, saying: "is not for code signing") {
      try $0.signByCertificate { $0.extendedKeyUsage = "serverAuth" }
    },
    .init("certificate for encryption", .wrongPurpose, saying: "is not for code signing") {
      try $0.signByCertificate { $0.keyUsage = "critical,keyEncipherment" }
    },
    .init("certificate of an authority", .wrongPurpose, saying: "'Someone'") {
      try $0.signByCertificate {
        $0.basicConstraints = "critical,CA:TRUE"
        $0.keyUsage = "critical,digitalSignature,keyCertSign"
      }
    },
    .init("certificate of two teams", .teamMismatch, saying: "several") {
      try $0.signByCertificate { $0.units = ["TEAM1", "TEAM2"] }
    },
    .init("signer of another team", .teamMismatch, saying: "'TEAM2'") {
      try $0.signAgain { $0.team = "TEAM2" }
    },
  ]

  private static let partsOfSignature: [BundleDamage] = [
    .init("no CodeDirectory", .malformedCodeDirectory, saying: "it is missing") {
      try $0.remove(parts + "CodeDirectory")
    },
    .init("CodeDirectory of nonsense", .malformedCodeDirectory) {
      try $0.write("nonsense", to: parts + "CodeDirectory")
    },
    .init("no CodeResources", .noCodeResources, parts + "CodeResources") {
      try $0.remove(parts + "CodeResources")
    },
    .init("CodeResources changed", .codeResourcesAltered, parts + "CodeResources") {
      try $0.edit(parts + "CodeResources") { $0 + "\n" }
    },
    .init("entitlements changed", .entitlementsAltered, parts + "CodeEntitlements") {
      try $0.edit(parts + "CodeEntitlements") { $0 + "\n" }
    },
    .init("entitlements removed", .entitlementsAltered, parts + "CodeEntitlements") {
      try $0.remove(parts + "CodeEntitlements")
    },
    .init("requirements that nobody has sealed", .guestInSignature, parts + "CodeRequirements") {
      try $0.write("", to: parts + "CodeRequirements")
    },
    .init("guest in the signature", .guestInSignature, parts + "guest") {
      try $0.write("", to: parts + "guest")
    },
    .init("weak rules", .weakRules, parts + "CodeResources") {
      try $0.sealAgain {
        $0.replacing(
          "<key>rules2</key>\n\t<dict>", with: "<key>rules2</key>\n\t<dict>\n\t\t<key>^x</key>\n\t\t<false/>")
      }
    },
    .init("file that is sealed by SHA-1", .weakDigest, welcome) { app in
      try app.sealAgain { text in
        let entry = /(Welcome.txt<\/key>\s*<dict>\s*<key>)hash2(<\/key>\s*<data>)[^<]*</
        return text.replacing(entry) { "\($0.1)hash\($0.2)I4RzBSGoE7hGLY//7JC4nMtM6Jc=<" }
      }
    },
  ]

  private static let nested: [BundleDamage] = [
    .init("nested code without a signature", .nestedUnsigned, "Contents/PlugIns/Help.bundle") {
      try $0.remove("\(help)/_CodeSignature")
    },
    .init("nested file changed", .changed, "\(help)/Resources/Help.txt") {
      try $0.write("x", to: "\(help)/Resources/Help.txt")
    },
    .init("nested executable changed", .executableAltered, "\(help)/MacOS/Help") {
      try $0.write("x", to: "\(help)/MacOS/Help")
    },
    .init("nested code of another version", .nestedRejected, "Contents/PlugIns/Help.bundle") {
      try $0.write("newer", to: "\(help)/Resources/Help.txt")
      #expect($0.shell.run("sign", "--force", "Note.app/Contents/PlugIns/Help.bundle").code == .ok)
    },
    .init("nested code that fails its requirement", .nestedRejected, "Contents/PlugIns/Help.bundle") {
      try $0.sealAgain { $0.replacing("TEAM1", with: "TEAM2") }
    },
  ]
}
