// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
@testable internal import Commands
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What `insula install` does with bundles that `insula verify` would not pass: nothing, and it says why.
@Suite struct InstallRefusalTests {
  /// Installs a damaged bundle; whatever it says, the store is as if it had not been asked.
  private func install(_ damage: BundleDamage) throws -> (app: SignedApp, result: Shell.Result) {
    let app = try SignedApp()
    let shell = app.shell
    #expect(shell.run("init", "store").code == .ok)
    #expect(shell.run("trust", "add", "root.pem", "--store", "store").code == .ok)
    try damage.act(app)
    let before = try tree(shell)
    let result = shell.run("install", "Note.app", "--store", "store")
    guard let kind = damage.kind else { return (app, result) }
    // What can't be copied is no finding; and that something is no more what was signed is told first.
    var codes: [ExitCode] =
      Self.isToldByCopy(result.errors) ? [.failed] : [.found(BundleProblem(kind)), app.verify().code]
    // A code directory is read only if it is what was signed.
    if kind == .malformedCodeDirectory { codes.append(.found(BundleProblem(.signatureMismatch))) }
    #expect(codes.contains(result.code) && result.output.isEmpty, "\(result) instead of \(codes)")
    #expect(try tree(shell) == before)
    #expect(try shell.temporary.names(in: "store/state/staging") == [])
    let apps = shell.run("apps", "--store", "store", "--json")
    #expect(apps.output.filter { !$0.isWhitespace } == "[]", "\(apps.errors)")
    #expect(!result.errors.contains("\u{1b}"))
    return (app, result)
  }

  /// All that is in the tree, and when it was changed.
  private func tree(_ shell: Shell) throws -> String {
    let words = ["find", shell.temporary.appending("store/tree"), "-printf", "%P %y %m %s %T@ %C@\n"]
    return try Program.run(words).output.split(separator: "\n").sorted().joined(separator: "\n")
  }

  /// That the finding is told by name: in the words for it, or as the copy says what it can't copy.
  private func check(_ damage: BundleDamage, _ app: SignedApp, _ errors: String) throws {
    let kind = try #require(damage.kind)
    let all = app.verify("--all").errors
    // A signature that speaks of something else is told before what has become of that.
    let first = String(all.split(separator: "\n").first ?? "")
    let isTold =
      errors.contains(kind.sentence)
      || kind == .malformedCodeDirectory && errors.contains(Finding.Kind.signatureMismatch.sentence)
      || Self.words(of: first).map { errors.contains($0) } ?? false
    #expect(isTold || Self.isToldByCopy(errors), "\(errors) instead of \(first)")
    #expect(errors.contains("Note.app"), "\(errors)")
  }

  private static func isToldByCopy(_ errors: String) -> Bool {
    [
      "only files, directories and links can be copied", "directories deep", "a name that can't be copied",
    ].contains { errors.contains($0) }
  }

  /// The sentence of the finding that is told.
  private static func words(of message: String) -> String? {
    Finding.Kind.allCases.map(\.sentence).first { message.contains($0) }
  }

  /// Time and trusted roots are other tests'.
  private static let changes = BundleDamage.afterSigning.filter {
    ![.expired, .notYetValid, .untrusted].contains($0.kind)
  }

  @Test(arguments: changes)
  func whatWasChangedAfterSigningIsRefused(damage: BundleDamage) throws {
    let (app, result) = try install(damage)
    guard damage.kind != nil else {
      #expect(result.code == .ok, "\(result.errors)")
      return
    }
    try check(damage, app, result.errors)
  }

  @Test(arguments: BundleDamage.lies + BundleDamage.signedLies)
  func liesAreRefused(damage: BundleDamage) throws {
    let (app, result) = try install(damage)
    try check(damage, app, result.errors)
  }
}
