// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import TestSupport
internal import Testing

private let database = "/usr/share/mime/globs2"

/// Whether the tool is there that reads the same database independently: it is what `xdg-mime query filetype`
/// runs.
private let isPossible: Bool = {
  let isThere =
    FileManager.default.isReadableFile(atPath: database)
    && (try? Program.run(["sh", "-c", "command -v mimetype"]).status) == 0
  if !isThere { print("SKIPPED: MIME types are not compared; it takes shared-mime-info and mimetype") }
  return isThere
}()

/// The MIME types of files by our types, and by another reader of the machine's database.
@Suite(.enabled(if: isPossible, "requires shared-mime-info and libfile-mimeinfo-perl"))
struct MIMETypeTests {
  /// Where we say something else: extensions that stand for two things, of which ours is the one that Apple's
  /// types have.
  private let exceptions = [
    // A model, as elsewhere by now; Tgif's drawings are hardly met any more.
    "obj": "model/obj",
    // The database has it as any Ogg file first, and in a file of its own as what we say.
    "opus": "audio/x-opus+ogg",
    // A font; templates of formulas are hardly met.
    "otf": "font/otf",
    // A stream; the other one is Qt's translations, and TypeScript is neither.
    "ts": "video/mp2t",
  ]

  private struct Answer: Decodable {
    let path: String
    let mimeType: String?
  }

  /// All extensions of the database, the ones with the greatest weight first; there are about a thousand.
  private func extensions() throws -> [String] {
    var weights: [String: Int] = [:]
    for line in try String(contentsOfFile: database, encoding: .utf8).split(separator: "\n") {
      let fields = line.split(separator: ":", omittingEmptySubsequences: false)
      guard fields.count >= 3, let weight = Int(fields[0]), fields[2].hasPrefix("*."),
        fields.count == 3 || !fields[3].contains("cs")
      else { continue }
      let name = fields[2].dropFirst(2).lowercased()
      if name.contains(where: { ".*?[".contains($0) }) || weights[name] != nil { continue }
      weights[name] = weight
    }
    let sorted = weights.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
    return Array(sorted.map(\.key).prefix(1000))
  }

  @Test func theyEqualWhatTheMachineSays() throws {
    let temporary = try TemporaryDirectory()
    let names = try extensions().map { "file.\($0)" }
    try #require(names.count > 500)
    for name in names { try temporary.write("x", to: name) }
    let told = try Program.run(["mimetype"] + names, in: temporary.path)
    var expected: [String: String] = [:]
    for line in told.output.split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 1)
      expected[String(parts[0])] = parts.last.map { $0.trimmingCharacters(in: .whitespaces) }
    }
    let ours = try Program.run(
      [Program.insula, "type", "--json"] + names, environment: ["HOME": temporary.path], in: temporary.path)
    let answers = try JSONDecoder().decode([Answer].self, from: Data(ours.output.utf8))
    try #require(answers.count == names.count && expected.count == names.count)
    let others = answers.filter { $0.mimeType != expected[$0.path] }
    print("\(answers.count - others.count) of \(answers.count) MIME types are the machine's")
    #expect(others.count * 50 <= answers.count)
    for answer in others {
      let name = String(answer.path.dropFirst("file.".count))
      #expect(
        exceptions[name] == answer.mimeType, "\(name) has no reason to be \(answer.mimeType ?? "nothing")")
    }
  }
}
