// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import TestSupport
internal import Testing

/// A pipe that lies where a file is expected, and that nobody writes to.
@Suite struct NamedPipeTests {
  private let temporary: TemporaryDirectory

  init() throws {
    temporary = try TemporaryDirectory()
    mkfifo(temporary.appending("pipe"), 0o600)
    symlink("pipe", temporary.appending("link"))
  }

  private func insula(_ words: [String]) throws -> (status: Int32, output: String, errors: String) {
    let result = try Program.run(
      ["timeout", "60", Program.insula] + words,
      environment: ["HOME": temporary.path, "PATH": "/usr/bin:/bin"],
      in: temporary.path)
    return (result.status, result.output, result.errors)
  }

  /// Whoever waited for it would wait for ever.
  @Test(arguments: [
    ["trust", "add"], ["config", "--check"], ["install", "--store", "store"],
    ["update", "--store", "store"],
  ])
  func nobodyWaitsForIt(words: [String]) throws {
    #expect(try insula(["init", "store"]).status == 0)
    for name in ["pipe", "./link"] {
      let result = try insula(words + [name])
      #expect(result.status == 1 && result.errors.contains("\(name) is a named pipe"), "\(words): \(result)")
    }
  }

  /// Where a passphrase or entitlements are expected.
  @Test func noOptionWaitsForIt() throws {
    #expect(try insula(["new-app", "Note"]).status == 0)
    #expect(try insula(["identity", "new", "anna", "--team", "EXAMPLE01"]).status == 0)
    let signed = try insula(["sign", "Note.app", "--entitlements", "pipe"])
    #expect(signed.status == 1 && signed.errors.contains("pipe is a named pipe"), "\(signed)")
    let exported = try insula([
      "identity", "export", "anna", "--key", "key.pem", "--passphrase-file", "pipe",
    ])
    #expect(exported.status == 1 && exported.errors.contains("pipe is a named pipe"), "\(exported)")
    let imported = try insula(["identity", "import", "Bert", "link", "--passphrase-file", "text"])
    #expect(imported.status == 1 && imported.errors.contains("link is a named pipe"), "\(imported)")
  }

  /// What a shell makes of `<(...)` has no name, and is read to its end.
  @Test func pipeOfAShellIsRead() throws {
    try temporary.write("[mount]\noptions = noatime\n", to: "text")
    let script =
      "'\(Program.insula)' config --check <(sleep 0.2; cat text); echo $?; cat text | "
      + "'\(Program.insula)' config --check /dev/stdin; echo $?"
    let result = try Program.run(
      ["timeout", "60", "bash", "-c", script],
      environment: ["HOME": temporary.path, "PATH": "/usr/bin:/bin"],
      in: temporary.path)
    let plain = try insula(["config", "--check", "text"])
    let words = plain.errors.split(separator: "text").last ?? ""
    #expect(
      result.output.split(separator: "\n").filter { $0 == "\(plain.status)" }.count == 2
        && !result.errors.contains("named pipe"), "\(words) \(result)")
  }
}
