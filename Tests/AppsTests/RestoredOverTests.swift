// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import Glibc
internal import LinuxIO
internal import Store
internal import TestSupport
internal import Testing

/// Root brings back what users share; of what that replaces, only what is their own is removed.
@Suite(.enabled(if: Program.isRoot)) struct RestoredOverTests {
  private let temporary: TemporaryDirectory
  private let owner: UInt32 = 64_001
  private let other: UInt32 = 64_002

  init() throws {
    temporary = try TemporaryDirectory()
    try temporary.makeDirectory("backup")
    try temporary.makeDirectory("shared", mode: 0o1777)
  }

  private func make(_ path: String, of user: UInt32, _ contents: String? = nil) throws {
    if let contents { try temporary.write(contents, to: path) } else { try temporary.makeDirectory(path) }
    try #require(chown(temporary.appending(path), user, user) == 0)
  }

  private func restore(
    keepingOwners keepsOwners: Bool = true,
    _ step: @escaping ([[UInt8]]) -> PlaceRestorer.Step = { _ in .replace }
  ) throws -> PlaceRestorer {
    let restorer = PlaceRestorer(.package, keepingOwners: keepsOwners, progress: { _ in }, step: step)
    let source = try TemporaryDirectory.open(temporary.appending("backup"))
    let target = try TemporaryDirectory.open(temporary.appending("shared"))
    restorer.restore(source.fd, to: target.fd, isRehearsal: false)
    return restorer
  }

  private func backUp() throws {
    try make("backup/project", of: owner)
    try make("backup/project/text", of: owner, "as it was")
    try make("backup/note", of: owner, "as it was")
  }

  @Test func ownThingsAreReplacedAndNothingIsLeft() throws {
    try backUp()
    try make("shared/project", of: owner)
    for number in 0..<3 {
      try make("shared/project/\(number)", of: owner)
      try make("shared/project/\(number)/text", of: owner, "new")
    }
    try make("shared/note", of: owner, "new")
    try make("shared/stranger", of: other, "stays")
    let restorer = try restore()
    #expect(restorer.failures.isEmpty, "\(restorer.failures)")
    #expect(restorer.replaced == 2)
    #expect(try temporary.names(in: "shared").sorted() == ["note", "project", "stranger"])
    #expect(try temporary.names(in: "shared/project") == ["text"])
    #expect(temporary.text(of: "shared/project/text") == "as it was")
    #expect(temporary.text(of: "shared/note") == "as it was")
    #expect(temporary.text(of: "shared/stranger") == "stays")
  }

  @Test func whatIsMissingComesBackWithoutAWord() throws {
    try backUp()
    let restorer = try restore()
    #expect(restorer.failures.isEmpty, "\(restorer.failures)")
    #expect(restorer.replaced == 0)
    #expect(try temporary.names(in: "shared").sorted() == ["note", "project"])
    #expect(temporary.text(of: "shared/project/text") == "as it was")
    #expect(temporary.text(of: "shared/note") == "as it was")
  }

  /// The attack: a user gives a directory of theirs, which can't be exchanged, a private one of another
  /// user's, and root fills that and opens it as the backup says.
  @Test(arguments: [true, false]) func nothingIsMergedIntoAnothersDirectory(keepsOwners: Bool) throws {
    for name in ["one", "two"] {
      try make("backup/\(name)", of: owner)
      try make("backup/\(name)/run", of: owner, "as it was")
      try #require(chmod(temporary.appending("backup/\(name)"), 0o777) == 0)
    }
    // Root's own restore is for root, and the one that keeps owners for the user.
    try make("shared/one", of: keepsOwners ? owner : 0)
    try make("shared/two", of: other)
    try make("shared/two/run", of: other, "theirs")
    try #require(chmod(temporary.appending("shared/two"), 0o700) == 0)
    let restorer = try restore(keepingOwners: keepsOwners) { $0.count == 1 ? .merge : .replace }
    #expect(restorer.failures.map(\.path) == ["two"], "\(restorer.failures)")
    #expect(restorer.failures.first?.reason == "it is another user's by now")
    let shared = try TemporaryDirectory.open(temporary.appending("shared"))
    let (filled, left) = (try shared.fd.status(of: "one"), try shared.fd.status(of: "two"))
    #expect(filled.permissions == 0o777 && left.permissions == 0o700 && left.st_uid == other)
    #expect(temporary.text(of: "shared/one/run") == "as it was")
    #expect(temporary.text(of: "shared/two/run") == "theirs")
    #expect(try temporary.names(in: "shared/two") == ["run"])
  }

  @Test func whatOthersHaveInItIsKept() throws {
    try backUp()
    try make("shared/project", of: owner)
    try make("shared/project/own", of: owner, "new")
    try make("shared/project/Team", of: owner)
    try make("shared/project/Team/private", of: other)
    try make("shared/project/Team/private/work", of: other, "work")
    try make("shared/project/Team/private/in it", of: owner, "new")
    // The name of a thing can be given to what is another user's.
    try make("shared/note", of: other)
    try make("shared/note/work", of: other, "more work")
    let restorer = try restore()
    #expect(temporary.text(of: "shared/project/text") == "as it was")
    #expect(temporary.text(of: "shared/note") == "as it was")
    let names = try temporary.names(in: "shared").filter { $0.hasPrefix(PlaceRestorer.prefix) }
    let place = try #require(names.first)
    #expect(names.count == 1)
    let shared = try TemporaryDirectory.open(temporary.appending("shared"))
    let status = try shared.fd.status(of: place)
    #expect(status.st_uid == 0 && status.permissions == 0o700)
    let kept = try temporary.names(in: "shared/\(place)")
    #expect(kept.count == 2, "\(kept)")
    let texts = kept.compactMap { temporary.text(of: "shared/\(place)/\($0)/work") }
    #expect(texts.sorted() == ["more work", "work"])
    #expect(kept.contains { temporary.text(of: "shared/\(place)/\($0)/in it") == "new" })
    #expect(restorer.failures.map(\.path).sorted() == [place, "note", "project/Team/private"])
    // The next one leaves it as well, once nobody works there any more.
    try #require(
      rename(
        temporary.appending("shared/\(place)"),
        temporary.appending("shared/\(PlaceRestorer.prefix)999999999-x")) == 0)
    let again = try restore()
    #expect(again.failures.map(\.path) == ["\(PlaceRestorer.prefix)999999999-x"])
    let left = try temporary.names(in: "shared/\(PlaceRestorer.prefix)999999999-x")
    #expect(left.sorted() == kept.sorted())
  }

  /// The attack: whoever may rename what a user has in a directory gives it the name of something that a
  /// stopped restore has left.
  @Test(arguments: [0o755, 0o777, 0o775] as [UInt32]) func nameProvesNotWhatWasLeft(mode: UInt32) throws {
    let place = "shared/open/\(PlaceRestorer.prefix)999999999-x"
    try make("backup/open", of: 0)
    try make("shared/open", of: 0)
    try make(place, of: 0)
    try make("\(place)/thesis", of: 0, "thesis")
    try #require(chmod(temporary.appending("shared/open"), mode) == 0)
    let restorer = try restore(keepingOwners: false) { $0.count == 1 ? .fill : .replace }
    let isAlone = mode == 0o755
    #expect(temporary.text(of: "\(place)/thesis") == (isAlone ? nil : "thesis"))
    #expect(restorer.failures.count == (isAlone ? 0 : 1), "\(restorer.failures)")
  }

  /// The attack: they give that name to it while something is made.
  @Test func nothingIsRemovedByItsNameAlone() throws {
    try backUp()
    try make("shared/project", of: 0)
    try make("shared/project/text", of: 0, "new")
    try make("shared/mine", of: 0)
    try make("shared/mine/thesis", of: 0, "thesis")
    let shared = temporary.appending("shared/")
    var taken = ""
    let restorer = PlaceRestorer(
      .package, keepingOwners: false,
      progress: { _ in
        let names = (try? temporary.names(in: "shared")) ?? []
        guard taken.isEmpty, let name = names.first(where: { $0.hasPrefix(PlaceRestorer.prefix) }),
          (try? temporary.names(in: "shared/\(name)")) != nil
        else { return }
        taken = name
        _ = rename(shared + name, shared + "gone") + rename(shared + "mine", shared + name)
      }, step: { _ in .replace })
    let source = try TemporaryDirectory.open(temporary.appending("backup"))
    let target = try TemporaryDirectory.open(shared)
    restorer.restore(source.fd, to: target.fd, isRehearsal: false)
    #expect(!taken.isEmpty && restorer.failures.map(\.path) == ["project"], "\(restorer.failures)")
    #expect(temporary.text(of: "shared/\(taken)/thesis") == "thesis")
    #expect(temporary.text(of: "shared/project/text") == "new")
    #expect(try temporary.names(in: "shared/gone").isEmpty)
    #expect(temporary.text(of: "shared/note") == "as it was")
  }
}
