// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
@testable internal import Commands
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What `insula verify` and `insula sign` say of bundles, whatever was done to them.
@Suite struct VerifyCommandTests {
  /// The message that a damage leads to, as far as it is known beforehand.
  private func check(_ damage: BundleDamage, _ app: SignedApp, _ result: Shell.Result, _ verb: String) {
    guard let kind = damage.kind else {
      #expect(result.code == .ok && result.errors.isEmpty, "\(verb): \(result.errors)")
      return
    }
    let first = String(result.errors.prefix { $0 != "\n" })
    #expect(result.code == .found(BundleProblem(kind)), "\(verb): \(result.errors)")
    let place = damage.place.isEmpty ? "" : "/\(damage.place)"
    #expect(first.hasPrefix("insula: Note.app\(place)"), "\(verb): \(first)")
    #expect(first.contains(kind.sentence), "\(verb): \(first)")
    #expect(damage.word.isEmpty || first.contains(damage.word), "\(verb): \(first)")
    #expect(first.hasSuffix("[\(kind.appleCode)]"), "\(verb): \(first)")
    #expect(result.output.isEmpty, "\(verb): \(result.output)")
    #expect(!result.errors.contains("\u{1b}"))
  }

  /// The table of outcomes, row by row: the finding, its message with the first bad file, its exit code; and
  /// the same as JSON.
  @Test(arguments: BundleDamage.afterSigning)
  func tamperingIsToldByName(damage: BundleDamage) throws {
    let app = try SignedApp()
    #expect(app.verify().output == "Note.app: org.example.note 1, signed by 'Anna' of the team TEAM1\n")
    try damage.act(app)
    check(damage, app, app.verify(), "verify")

    let json = app.verify("--json")
    let reports = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [[String: Any]]
    let report = try #require(reports?.first)
    #expect(report["good"] as? Bool == (damage.kind == nil))
    let finding = (report["findings"] as? [[String: Any]])?.first
    #expect(finding?["kind"] as? String == damage.kind?.rawValue)
    #expect(finding?["exitCode"] as? Int32 == damage.kind.map { BundleProblem($0).number })
    #expect(json.code == app.verify().code)
  }

  /// A bundle that lies is refused by name: signed before it began to, and not signed at all.
  @Test(arguments: BundleDamage.lies)
  func liesAreRefused(damage: BundleDamage) throws {
    let signed = try SignedApp()
    try damage.act(signed)
    // What is said first may be that it is no more what was signed.
    let code = signed.verify().code
    #expect(BundleProblem.all.contains { code == .found($0) }, "\(signed.verify().errors)")
    let all = signed.verify("--all").errors
    let kind = try #require(damage.kind)
    let isRead = all.contains(kind.sentence) && (damage.word.isEmpty || all.contains(damage.word))
    // What was not there when it was signed is told as that, and not entered.
    let isAltered = [.infoPlistAltered, .added].contains { code == .found(BundleProblem($0)) }
    #expect(isRead || isAltered, "\(all)")

    let unsigned = try SignedApp(isSigned: false)
    try damage.act(unsigned)
    check(damage, unsigned, unsigned.shell.run("sign", "Note.app"), "sign")
    // Nothing was signed, and nothing left behind.
    if damage.place != "Contents/_CodeSignature" {
      var status = stat()
      #expect(lstat(unsigned.full("Contents/_CodeSignature"), &status) != 0)
      #expect(lstat(unsigned.shell.temporary.appending("moved/_CodeSignature"), &status) != 0)
    }
    // The lie is told before that it is not signed, where it is read.
    let lie = unsigned.verify()
    #expect([kind, .unsigned].contains { lie.code == .found(BundleProblem($0)) }, "\(lie)")
  }

  /// And so is a signature that lies, though someone who is trusted has made it.
  @Test(arguments: BundleDamage.signedLies)
  func signedLiesAreRefused(damage: BundleDamage) throws {
    let app = try SignedApp()
    try damage.act(app)
    check(damage, app, app.verify(), "verify")
  }

  @Test(.enabled(if: Program.isRoot, "devices are made by root"))
  func devicesAreRefused() throws {
    for kind: UInt32 in [0o020000, 0o060000] {
      let damage = BundleDamage("device", .specialFile, "Contents/Resources/new") {
        #expect(mknod($0.full("Contents/Resources/new"), kind | 0o644, dev_t(0x103)) == 0)
      }
      let app = try SignedApp()
      try damage.act(app)
      check(damage, app, app.verify(), "verify")
      check(damage, app, app.shell.run("sign", "--force", "Note.app"), "sign")
    }
  }

  /// No kind of finding is without a row, a message and a number of its own.
  @Test func everyKindOfFindingIsToldByACommand() {
    let rows = BundleDamage.afterSigning + BundleDamage.lies + BundleDamage.signedLies
    #expect(Set(rows.compactMap(\.kind)) == Set(Finding.Kind.allCases))
    let numbers = BundleProblem.all.map(\.number)
    #expect(Set(numbers).count == Finding.Kind.allCases.count)
    #expect(numbers.allSatisfy { (20..<126).contains($0) })
    for problem in BundleProblem.all { #expect(ExitCode(rawValue: problem.number) == .found(problem)) }
  }

  @Test func helpAndDocumentationHaveTheTable() throws {
    let help = try Shell().run("help", "verify").output
    for problem in BundleProblem.all {
      #expect(help.contains("  \(problem.number)  \(problem.meaning) [\(problem.kind.appleCode)]"))
    }
    let table = BundleProblem.markdownTable()
    let text = try String(contentsOfFile: Repository.root + "/Documentation/SIGNING.md", encoding: .utf8)
    #expect(text.contains(table), "paste this:\n\(table)")
  }

  @Test func severalBundlesAreJudgedEach() throws {
    let app = try SignedApp()
    #expect(app.shell.run("new-app", "Other").code == .ok)
    let missing = app.shell.run("verify", "nowhere", "Note.app")
    #expect(missing.code == .failed && missing.errors.contains("can't open nowhere"))
    #expect(missing.output.hasPrefix("Note.app: "))
    let both = app.shell.run("verify", "Other.app", "Note.app")
    #expect(both.code == .found(BundleProblem(.unsigned)))
    #expect(both.output.hasPrefix("Note.app: ") && both.errors.hasPrefix("insula: Other.app: "))
    try app.write("", to: "Contents/Resources/one")
    try app.write("", to: "Contents/Resources/two")
    let first = app.verify().errors.split(separator: "\n")
    #expect(first.count == 2 && first[1].hasSuffix("1 more; '--all' shows all findings"))
    #expect(app.verify("--all").errors.split(separator: "\n").count == 2)
    #expect(app.verify("--all").errors.contains("Note.app/Contents/Resources/two: is not in the seal"))
    // The person's own link is followed, and the bundle's name is its own.
    symlink("Note.app", app.shell.temporary.appending("Link.app"))
    #expect(app.shell.run("verify", "Link.app").code == app.verify().code)
  }
}
