// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import Glibc
internal import LinuxIO
internal import Store
internal import TestSupport
internal import Testing

/// What is copied of a database is what is held, whatever has its names by then.
@Suite struct DatabaseHoldTests {
  private let temporary: TemporaryDirectory

  init() throws {
    temporary = try TemporaryDirectory()
    try temporary.makeDirectory("data")
    try temporary.makeDirectory("copy")
    let header = "SQLite format 3\0" + String(repeating: "\u{1}", count: 496)
    try temporary.write(header, to: "data/x.db")
    try temporary.write("journal", to: "data/x.db-journal")
  }

  private func copy(_ file: DatabaseHold.File, in target: FD) throws(TreeCopyFailure) {
    try DataCopy(.init(from: .package, to: .package)).copy(file: file.fd, named: file.name, in: target)
  }

  @Test func directoryThatHasItsNameIsNotCopied() throws {
    let directory = try TemporaryDirectory.open(temporary.appending("data"))
    let target = try TemporaryDirectory.open(temporary.appending("copy"))
    let taken = try DatabaseHold.take(Array("x.db".utf8), in: directory.fd)
    guard let hold = consume taken else {
      Issue.record("it is a database")
      return
    }
    let names = ["x.db", "x.db-journal"]
    let files = hold.files
    #expect(files.map { String(decoding: $0.name, as: UTF8.self) } == names)
    let isKept = hold.isKept(in: directory.fd)
    #expect(isKept)
    for name in names {
      #expect(rename(temporary.appending("data/\(name)"), temporary.appending("data/\(name)-before")) == 0)
      try temporary.makeDirectory("data/\(name)")
      try temporary.write("large", to: "data/\(name)/large")
    }
    for file in files { try copy(file, in: target.fd) }
    #expect(temporary.text(of: "copy/x.db")?.hasPrefix("SQLite format 3") == true)
    #expect(temporary.text(of: "copy/x.db-journal") == "journal")
    let isKeptAfterwards = hold.isKept(in: directory.fd)
    #expect(!isKeptAfterwards)
  }

  /// The database alone may still have its name.
  @Test func journalThatWasExchangedIsNoted() throws {
    let directory = try TemporaryDirectory.open(temporary.appending("data"))
    let taken = try DatabaseHold.take(Array("x.db".utf8), in: directory.fd)
    guard let hold = consume taken else {
      Issue.record("it is a database")
      return
    }
    let before = temporary.appending("data/before")
    #expect(rename(temporary.appending("data/x.db-journal"), before) == 0)
    try temporary.write("another", to: "data/x.db-journal")
    let isKept = hold.isKept(in: directory.fd)
    #expect(!isKept)
  }

  @Test func directoryBesideItIsNoJournal() throws {
    #expect(unlink(temporary.appending("data/x.db-journal")) == 0)
    try temporary.makeDirectory("data/x.db-journal")
    let directory = try TemporaryDirectory.open(temporary.appending("data"))
    let taken = try DatabaseHold.take(Array("x.db".utf8), in: directory.fd)
    guard let hold = consume taken else {
      Issue.record("it is a database")
      return
    }
    let count = hold.files.count
    #expect(count == 1)
  }
}
