// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import TestSupport
internal import Testing

/// The README's tour is what really happens.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ReadmeTests {
  /// A command, and what the README says that it prints.
  private struct Step {
    let command: String
    var output = ""
  }

  private func steps() throws -> [Step] {
    let readme = try String(contentsOfFile: Repository.root + "/README.md", encoding: .utf8)
    var steps: [Step] = []
    var isTour = false
    for line in readme.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("```") {
        isTour = line == "```console"
      } else if isTour, line.hasPrefix("$ ") {
        steps.append(Step(command: String(line.dropFirst(2))))
      } else if isTour, !steps.isEmpty {
        steps[steps.count - 1].output += line + "\n"
      }
    }
    return steps
  }

  /// What is the same every time: the words, numbers and identifiers left out.
  private func words(_ text: String) -> [String] {
    let uuids = text.replacing(/[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}/, with: "UUID")
    let roots = uuids.replacing(/[0-9a-f]{64}/, with: "FINGERPRINT").replacing(
      /Development [0-9a-f]{8}/, with: "Development X")
    return roots.replacing(/[0-9]+/, with: "N").split { $0 == " " || $0 == "\n" || $0 == "\t" }
      .map(String.init).sorted()
  }

  @Test func tour() throws {
    let temporary = try TemporaryDirectory(mode: 0o1777)
    let home = try temporary.makeDirectory("home", mode: 0o1777)
    let directory = URL(fileURLWithPath: Program.insula).deletingLastPathComponent().path
    let environment = [
      "HOME": home, "PATH": "\(directory):/usr/bin:/bin", "LC_ALL": "C", "XDG_DATA_HOME": "",
      "XDG_CONFIG_HOME": "",
      "XDG_RUNTIME_DIR": "",
    ]
    let steps = try steps()
    #expect(steps.count >= 12)
    for step in steps {
      let command = step.command.replacing("anna", with: "nobody")
      let result = try Program.runAsNobody(["sh", "-c", "cd; \(command)"], environment: environment)
      let output = (result.output + result.errors).replacing(home, with: "/home/anna")
        .replacing("nobody", with: "anna")
      #expect(words(output) == words(step.output), "\(step.command)\n\(output)")
    }
  }
}
