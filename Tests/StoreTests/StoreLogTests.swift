// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
@testable internal import Store
internal import TestSupport
internal import Testing

/// The files of a store's log: what is written is read, whatever becomes of them, and they stay small.
@Suite struct StoreLogTests {
  private let made: TestStore
  private let store: Store

  init() throws {
    made = try TestStore()
    store = try made.open()
  }

  private func path(_ name: String) -> String { made.path + "/state/log/" + name }

  private func entry(
    _ event: LogEntry.Event = .denied, user: UInt32? = 1001, app: String? = nil, path: String? = nil,
    time: Int64 = 1
  ) -> LogEntry { LogEntry(event, user: user, app: app, path: path, time: time) }

  /// All that a query gives, page by page.
  private func all(_ log: StoreLog, _ query: LogQuery = LogQuery()) -> [LogEntry] {
    var query = query
    var entries: [LogEntry] = []
    while true {
      let page = log.page(query)
      entries += page.entries
      query.after = page.next
      if !page.isMore { return entries }
    }
  }

  private func size(_ name: String) -> Int {
    var status = FileStatus()
    return stat(path(name), &status) == 0 ? Int(status.st_size) : 0
  }

  @Test func whatIsWrittenIsReadInItsOrder() throws {
    let log = StoreLog(store)
    #expect(all(log).isEmpty)
    let names = (0..<1000).map { "Users/a/\($0)" }
    // Spread over files of several users, and of two kinds.
    for (index, name) in names.enumerated() {
      let user: UInt32? = index % 7 == 0 ? nil : UInt32(1000 + index % 3)
      try log.append([entry(index % 5 == 0 ? .granted : .denied, user: user, path: name)])
    }
    #expect(all(log).map(\.path) == names)
    #expect(all(StoreLog(store)).map(\.path) == names)
    var status = FileStatus()
    #expect(stat(made.path + "/state/log", &status) == 0 && status.st_mode & 0o777 == 0o700)
    #expect(stat(path("1001.denied"), &status) == 0 && status.st_mode & 0o777 == 0o600)
  }

  /// Accounts by their names; each time another file, as after a change.
  private func accounts(_ numbers: [String: UInt32]) throws -> LocalAccounts {
    let path = made.path + "/passwd-\(UUID())"
    let lines = numbers.map { "\($0):x:\($1):\($1)::/nonexistent:/bin/sh\n" }
    try lines.joined().write(toFile: path, atomically: true, encoding: .utf8)
    return LocalAccounts(path: path)
  }

  /// Numbers change hands, also while somebody serves: nobody sees what another account has done, and none of
  /// it is lost.
  @Test(.enabled(if: getuid() == 0), arguments: [false, true])
  func whatAnotherAccountDidIsRootsAlone(isFollowed: Bool) throws {
    func seen(_ log: StoreLog, _ user: UInt32) -> [String?] {
      all(log, LogQuery(user: user)).filter { $0.user != nil }.map(\.path)
    }
    let before = StoreLog(store, try accounts(["anna": 1001, "ben": 1002, "cleo": 1003, "fay": 1005]))
    let users: [UInt32] = [1001, 1002, 1003, 1004, 1005]
    for user in users { try before.append([entry(user: user, path: "\(user)")]) }
    for user in users { #expect(seen(before, user) == ["\(user)"]) }
    // Two have exchanged theirs, one is gone, and one is called otherwise, as its home says.
    let home = made.path + "/tree/Users/fay"
    #expect(mkdir(home, 0o711) == 0 && chown(home, 1005, 0) == 0)
    let after = StoreLog(store, try accounts(["anna": 1002, "ben": 1001, "dora": 1003, "eva": 1005]))
    if isFollowed { after.handOver([1001, 1004, 1005], [1004: "gina"]) }
    for user in users { #expect(seen(after, user) == (user < 1004 ? [] : ["\(user)"]), "\(user)") }
    for user in users { try after.append([entry(user: user, path: "\(user)+")]) }
    for log in [
      after, StoreLog(store, try accounts(["anna": 1002, "ben": 1001, "dora": 1003, "eva": 1005])),
    ] {
      for user in users {
        #expect(seen(log, user) == (user < 1004 ? ["\(user)+"] : ["\(user)", "\(user)+"]), "\(user)")
      }
      #expect(all(log).count == 10)
    }
    // Somebody else is called so by now.
    let named = StoreLog(store, try accounts(["eva": 1005, "fay": 1006]))
    #expect(seen(named, 1005).count == 2 && seen(named, 1006) == [])
    // What comes next is seen, whatever is deleted of others.
    for user in users.dropFirst() { try after.forget(user) }
    #expect(all(after).count == 2 && access(path("1002.holder"), F_OK) == -1)
    let last = StoreLog(store, try accounts(["ben": 1001]))
    try last.append([entry(user: 1001, path: "last")])
    #expect(seen(last, 1001) == ["1001+", "last"])
  }

  /// Of a log of before nobody knows whose it is, but by what else is noted.
  @Test(.enabled(if: getuid() == 0)) func logsOfBeforeAreTheirsWhoAreKnown() throws {
    let now = try accounts(["anna": 1001, "ben": 1002])
    // Nobody is noted as long as there are no accounts.
    let before = StoreLog(store, try accounts([:]))
    for user in [1001, 1002, 1003] as [UInt32] { try before.append([entry(user: user)]) }
    let log = StoreLog(store, now)
    log.handOver([1001, 1002], [1001: "anna", 1002: "gone"])
    #expect(all(log, LogQuery(user: 1001)).count == 1 && all(log, LogQuery(user: 1002)).isEmpty)
    #expect(all(log, LogQuery(user: 1003)).count == 1 && all(log).count == 3)
  }

  @Test func somebodySeesWhatConcernsThem() throws {
    let log = StoreLog(store)
    try log.append([
      entry(user: 1001, app: "org.a", path: "1"), entry(.granted, user: 1002, app: "org.a", path: "2"),
      entry(.mounted, user: nil, path: "3"), entry(user: 1002, app: "org.b", path: "4", time: 100),
    ])
    #expect(all(log, LogQuery(user: 1002)).map(\.path) == ["2", "3", "4"])
    #expect(all(log, LogQuery(user: 1001)).map(\.path) == ["1", "3"])
    #expect(all(log, LogQuery(user: 7)).map(\.path) == ["3"])
    #expect(all(log, LogQuery(app: "ORG.A")).map(\.path) == ["1", "2"])
    #expect(all(log, LogQuery(since: 50)).map(\.path) == ["4"])
    #expect(all(log, LogQuery(deniedOnly: true)).map(\.path) == ["1", "4"])
  }

  /// useradd(8) gives an account such ids where the machine does so at all.
  @Test(.enabled(if: getuid() == 0)) func additionalIDSeesItsOwnAndNotItsAccounts() throws {
    let account = try TemporaryAccount()
    guard let first = account.firstAdditionalID else { return }
    let owner = account.account.uid
    #expect(eventually { Payer(user: first + 7).user == owner })
    let log = StoreLog(store)
    try log.append([
      entry(user: owner, path: "1"), entry(user: first + 7, path: "2"),
      entry(.granted, user: owner, path: "3"),
      entry(.mounted, user: nil, path: "4"), entry(user: first + 8, path: "5"),
    ])
    #expect(all(log, LogQuery(user: owner)).map(\.path) == ["1", "2", "3", "4", "5"])
    #expect(all(log, LogQuery(user: first + 7)).map(\.path) == ["2", "4"])
    #expect(all(log, LogQuery(user: first + 9)).map(\.path) == ["4"])
  }

  /// A directory service may have given an account a number that lies in another account's range.
  ///
  /// What it does is nothing for that one to read, wherever it was written, and goes with it.
  @Test(.enabled(if: getuid() == 0)) func accountInARangeKeepsItsEntriesToItself() throws {
    let account = try TemporaryAccount()
    guard let first = account.firstAdditionalID else { return }
    let owner = account.account.uid
    #expect(eventually { Payer(user: first + 7).user == owner })
    let log = StoreLog(store)
    // Of no other test: ranges are given out again, and what was an account is known as one for a while.
    let numbers = [first + 1500, first + 1501, first + 1502]
    // Before anybody knows that they are accounts, and then one that only has a home.
    for user in [owner, first + 7] + numbers {
      try log.append([entry(user: user, path: "d\(user)"), entry(.granted, user: user, path: "g\(user)")])
    }
    #expect(size("\(first + 1500).denied") == 0 && size("\(owner).denied") > 0)
    let others = try numbers.prefix(2).map { try TemporaryAccount(number: $0) }
    let home = made.path + "/tree/Users/away"
    #expect(mkdir(home, 0o700) == 0 && chown(home, first + 1502, 0) == 0)
    let own = ["d\(owner)", "g\(owner)", "d\(first + 7)", "g\(first + 7)"]
    #expect(eventually { all(log, LogQuery(user: owner)).map(\.path) == own })
    #expect(all(StoreLog(store), LogQuery(user: owner)).map(\.path) == own)
    for user in numbers {
      #expect(all(log, LogQuery(user: user)).map(\.path) == ["d\(user)", "g\(user)"])
    }
    // From now on they have files of their own.
    for other in others { try log.append([entry(user: other.account.uid, path: "later")]) }
    #expect(size("\(first + 1500).denied") > 0 && size("\(first + 1501).denied") > 0)
    #expect(all(log, LogQuery(user: owner)).map(\.path) == own)
    let before = all(log)
    try log.forget(first + 1500)
    #expect(all(log) == before.filter { $0.user != first + 1500 })
    #expect(all(StoreLog(store)) == all(log))
    for name in try made.temporary.names(in: "store/state/log") {
      let text = try String(contentsOfFile: path(name), encoding: .utf8)
      #expect(!text.contains("\(first + 1500)") && name.hasPrefix(".") == false, "\(name)")
    }
    // Its next entry comes after all others all the same.
    try log.append([entry(user: first + 1500, path: "next")])
    #expect(all(log).last?.path == "next" && all(log).map(\.number) == all(log).map(\.number).sorted())
    // What a process left that was stopped meanwhile is no file of anybody's.
    _ = try made.temporary.write("99 {\"time\":1,\"event\":\"denied\"}\n", to: "store/state/log/.rewritten")
    #expect(all(StoreLog(store)).map(\.number) == all(log).map(\.number))
    try StoreLog(store).forget(first + 1501)
    #expect(all(StoreLog(store)).contains { $0.user == first + 1501 } == false)
  }

  /// A million of somebody's entries take no room of others', and little of the disk.
  @Test func floodTakesNobodyElsesPlace() throws {
    let log = StoreLog(store)
    try log.append([
      entry(user: 1002, path: "other's"), entry(.granted, path: "own grant"), entry(.mounted, user: nil),
    ])
    let name = String(repeating: "x", count: 1000)
    for round in 0..<100 { try log.append((0..<100).map { entry(path: "\(round) \($0) \(name)") }) }
    #expect(size("1001.denied") <= 1 << 20 && size("1001.denied.old") <= 1 << 20)
    let left = try FileManager.default.contentsOfDirectory(atPath: made.path + "/state/log").sorted()
      // Where the machine has such an account.
      .filter { !$0.hasSuffix(".holder") }
    #expect(
      left == ["1001.denied", "1001.denied.old", "1001.done", "1002.denied", "machine.done"], "\(left)")
    let kept = all(log)
    #expect(kept.contains { $0.path == "other's" } && kept.contains { $0.path == "own grant" })
    #expect(kept.contains { $0.event == .mounted })
    #expect(kept.last?.path?.hasPrefix("99 99 ") == true)
    // What is left of the flood is its end, and nothing of that is missing.
    let numbers = kept.filter { $0.path?.hasSuffix(name) == true }.map(\.number)
    #expect(numbers.count > 900 && numbers == Array((numbers.first ?? 0)...(numbers.last ?? 0)))
    // Whoever follows asks for what is new, and need not read the rest.
    let last = kept.last?.number ?? 0
    try log.append([entry(path: "new")])
    #expect(log.page(LogQuery(after: last)).entries.map(\.path) == ["new"])
    #expect(log.page(LogQuery(after: last + 1)).entries.isEmpty)
  }

  /// A process that is killed while it writes leaves a part of a line; a disk may leave anything.
  @Test(arguments: [
    Array("7 {\"time\":1,\"ev".utf8), Array("\n\n\n".utf8), Array("9 {}\n".utf8), [0xff, 0, 10, 0x20],
    Array("18446744073709551615 {\"time\":1,\"event\":\"denied\"}\n".utf8),
    Array("99999999999999999999999 {\"time\":1,\"event\":\"denied\"}\n".utf8),
    [UInt8](repeating: 0x78, count: 300_000), Array("8 {\"time\":1e400,\"event\":\"x\"}\n".utf8),
  ])
  func damagedLinesAreNoEntries(bytes: [UInt8]) throws {
    try StoreLog(store).append([entry(path: "before")])
    let file = try #require(FileHandle(forWritingAtPath: path("1001.denied")))
    file.seekToEndOfFile()
    file.write(Data(bytes))
    try file.close()
    let log = StoreLog(store)
    #expect(all(log).map(\.path) == ["before"])
    try log.append([entry(path: "after")])
    #expect(all(log).map(\.path) == ["before", "after"])
    #expect(all(StoreLog(store)).map(\.path) == ["before", "after"])
    let numbers = all(log).map(\.number)
    #expect(numbers.count == 2 && numbers.first ?? 0 < numbers.last ?? 0)
  }

  /// A disk that is full keeps any part of a line; the numbers go on, and hide nothing of anybody's.
  @Test func lineThatIsTornInItsNumberTurnsNothingBack() throws {
    try StoreLog(store).append((0..<13).map { entry(path: "a\($0)") })
    let file = try #require(FileHandle(forUpdatingAtPath: path("1001.denied")))
    let whole = try #require(try file.readToEnd())
    let lines = whole.split(separator: UInt8(ascii: "\n"))
    try file.truncate(atOffset: UInt64(whole.count - (lines.last?.count ?? 0) - 1 + 1))
    try file.close()
    let log = StoreLog(store)
    try log.append((0..<4).map { entry(user: 1002, path: "b\($0)") })
    let found = all(log)
    #expect(found.map(\.path) == (0..<12).map { "a\($0)" } + (0..<4).map { "b\($0)" })
    #expect(Set(found.map(\.number)).count == 16)
  }

  /// Names are anybody's words.
  @Test func namesForgeNoLines() throws {
    let log = StoreLog(store)
    let evil = "x\n8 {\"time\":1,\"event\":\"granted\",\"user\":0}\n\u{1b}[2J\u{0}\"},\\"
    try log.append([entry(path: evil)])
    #expect(all(log).map(\.path) == [evil])
    let text = try String(contentsOfFile: path("1001.denied"), encoding: .utf8)
    #expect(text.split(separator: "\n").count == 1 && !text.contains("\u{1b}"))
    // A path is bounded, and so is a line of whatever it is made of.
    var longest = entry()
    longest.setPath([UInt8](repeating: 1, count: 100_000))
    let long = try #require(longest.path)
    #expect(long.utf8.count <= LogEntry.longestPath + 3)
    var entry = entry(path: long)
    entry.detail = String(repeating: "\u{1}", count: 4096)
    try log.append([entry])
    #expect(all(log).count == 2)
  }

  @Test func linksAreNotFollowed() throws {
    let elsewhere = try made.temporary.write("kept", to: "elsewhere")
    try StoreLog(store).append([entry(.granted)])
    #expect(symlink(elsewhere, path("1001.denied")) == 0)
    #expect(throws: Errno.self) { try StoreLog(store).append([entry()]) }
    #expect(made.temporary.text(of: "elsewhere") == "kept")
    #expect(all(StoreLog(store)).count == 1)
  }

  /// What is deleted of one user is deleted of nobody else, and numbers go on.
  @Test func oneUsersEntriesCanBeDeleted() throws {
    let log = StoreLog(store)
    for user in [1001, 11001, 1001, 100, nil] as [UInt32?] {
      try log.append([entry(user: user), entry(.granted, user: user)])
    }
    for name in ["1001.denied", "1001.done"] {
      #expect(rename(path(name), path(name + ".old")) == 0)
      try log.append([entry(name.hasSuffix("denied") ? .denied : .granted)])
    }
    let others = all(log).filter { $0.user != 1001 }
    try log.forget(1001)
    #expect(all(log) == others && all(StoreLog(store)) == others)
    #expect(try made.temporary.names(in: "store/state/log").filter { $0.hasPrefix("1001") } == [])
    try log.append([entry(.granted)])
    #expect(all(log).last?.number == 13 && all(log).last?.user == 1001)
    // Where there is nothing, there is nothing to do.
    try log.forget(7)
    // A process that has not looked at it yet does not use the numbers again either, which somebody may have
    // read up to here.
    let next = StoreLog(store)
    try next.forget(1001)
    try next.append([entry(.granted, user: 1002)])
    #expect(all(next).last?.number == 14 && all(next).last?.user == 1002)
  }
}
