// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// What SQLite finds beside the registry of a store that somebody else has made.
@Suite struct RegistryJournalTests {
  private let made: TestStore
  private let store: Store
  private var state: String { made.path + "/state" }
  private var file: String { state + "/insula.db" }
  private var journal: String { file + "-journal" }

  init() throws {
    made = try TestStore()
    store = try made.open()
    try Registry(of: store).add(.example())
  }

  // MARK: Journals made by hand

  private func bytes(of path: String) throws -> [UInt8] {
    let file = try path.withName { (name) throws(Errno) in try FD.cwd.open(name, O_RDONLY) }
    return try file.fd.readToEnd(limit: 1 << 24)
  }

  private func write(_ bytes: [UInt8], to path: String) throws {
    let file = try path.withName { (name) throws(Errno) in
      try FD.cwd.open(name, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600)
    }
    try file.fd.writeAll(bytes)
  }

  private func number(_ value: Int) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
  }

  private static let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]

  private struct Shape {
    let pageSize: Int
    let pages: Int

    init(_ database: [UInt8]) {
      func number(at index: Int, _ count: Int) -> Int {
        database[index..<index + count].reduce(0) { $0 << 8 | Int($1) }
      }
      pageSize = number(at: 16, 2)
      pages = number(at: 28, 4)
    }
  }

  /// The first sector of a journal that has so many pages.
  private func header(_ shape: Shape, records: Int) -> [UInt8] {
    let numbers = [records, 0, shape.pages, 512, shape.pageSize].flatMap(number)
    let start = Self.magic + numbers
    return start + [UInt8](repeating: 0, count: 512 - start.count)
  }

  /// A journal without pages that names another file.
  private func makeJournal(naming other: String) throws {
    let shape = try Shape(bytes(of: file))
    let name = Array(other.utf8)
    let sum = name.reduce(0) { $0 + ($1 < 128 ? Int($1) : Int($1) - 256) }
    let lockPage = 0x4000_0000 / shape.pageSize + 1
    try write(
      header(shape, records: 0) + number(lockPage) + name + number(name.count) + number(sum) + Self.magic,
      to: journal)
  }

  // MARK: Ours

  /// A process was killed after it had begun to write a change into the database.
  @Test(arguments: [false, true]) func changeThatWasStoppedIsTakenBack(isLooking: Bool) throws {
    let before = try bytes(of: file)
    let shape = Shape(before)
    let last = (shape.pages - 1) * shape.pageSize..<shape.pages * shape.pageSize
    let page = Array(before[last])
    let sum = stride(from: shape.pageSize - 200, to: 0, by: -200).reduce(0) { $0 + Int(page[$1]) }
    try write(header(shape, records: 1) + number(shape.pages) + page + number(sum), to: journal)
    var damaged = before
    damaged.replaceSubrange(last, with: [UInt8](repeating: 0xaa, count: page.count))
    try write(damaged, to: file)
    let looking = isLooking ? try Registry.existing(of: store) : nil
    let registry = try looking ?? Registry(of: store)
    #expect((looking != nil) == isLooking)
    #expect(try registry.apps() == [.example()] && registry.problems().isEmpty)
    #expect(try Array(bytes(of: file)[last]) == page)
  }

  // MARK: Somebody else's

  /// To look at it, and to change it.
  private var ways: [() throws -> Void] {
    [{ _ = try Registry.existing(of: store) }, { _ = try Registry(of: store) }]
  }

  private func refusesTheJournal() throws {
    let before = try bytes(of: journal)
    for open in ways {
      guard case .registryDamaged(file, let what) = storeError(open) else {
        Issue.record("opened, or refused for another reason")
        continue
      }
      #expect(what.hasPrefix("the journal beside it names another file"))
    }
    #expect(try bytes(of: journal) == before)
  }

  @Test func fileThatAJournalNamesStays() throws {
    let victim = try made.temporary.write("root's", to: "victim")
    try makeJournal(naming: victim)
    try refusesTheJournal()
    #expect(made.temporary.text(of: "victim") == "root's")
  }

  /// Also one that this process may use by another connection.
  @Test func databaseOfAnotherStoreStays() throws {
    let other = try TestStore()
    let otherStore = try other.open()
    let registry = try Registry(of: otherStore)
    try registry.add(.example("com.example.other"))
    let directories = FD.allOpen.filter {
      (try? $0.ownPath()).map { String(decoding: $0, as: UTF8.self) } == other.path + "/state"
    }
    // The store's own, and that of the connection.
    #expect(directories.count >= 2)
    for directory in directories {
      try makeJournal(naming: "/proc/self/fd/\(directory.raw)/insula.db")
      try refusesTheJournal()
    }
    #expect(try registry.apps().map(\.identifier.text) == ["com.example.other"])
    #expect(try Registry.existing(of: otherStore)?.apps().count == 1)
  }

  @Test(arguments: ["", "/insula.db", "/insula.db-journal"])
  func whatOthersCanChangeIsNotUsed(name: String) throws {
    let path = state + name
    func isRefused(_ owner: UInt32?) -> Bool {
      ways.allSatisfy { storeError($0) == .registryOfOthers(path: path, owner: owner) }
    }
    var status = stat()
    guard stat(path, &status) == 0 else { throw Errno.last }
    for mode in [0o020, 0o002] as [UInt32] {
      guard chmod(path, status.st_mode | mode) == 0 else { throw Errno.last }
      #expect(isRefused(nil))
    }
    var check = try StoreCheck(store, repairing: false)
    try check.run()
    #expect(check.findings.contains { $0.path == path && $0.problem.contains("can be changed by others") })
    guard chmod(path, status.st_mode) == 0 else { throw Errno.last }
    #expect(try Registry.existing(of: store)?.apps().count == 1)
    guard Program.isRoot else { return }
    guard chown(path, 65534, 65534) == 0 else { throw Errno.last }
    #expect(isRefused(65534))
  }

  @Test func onlyFilesAreOpened() throws {
    let elsewhere = try made.temporary.write("decoy", to: "decoy")
    for make in [{ mkfifo($0, 0o600) }, { symlink(elsewhere, $0) }] as [(String) -> Int32] {
      guard unlink(journal) == 0, make(journal) == 0 else { throw Errno.last }
      guard case .registryDamaged = storeError({ _ = try Registry.existing(of: store) }) else {
        Issue.record("opened, or refused for another reason")
        continue
      }
    }
    #expect(made.temporary.text(of: "decoy") == "decoy")
  }
}
