// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
internal import Synchronization

/// Tests run side by side, so several of them may have accounts and groups at a time.
private let lastNumber = Atomic<Int>(0)

private func newName() -> String {
  "insula-test-\(getpid())-\(lastNumber.wrappingAdd(1, ordering: .relaxed).newValue)"
}

private func administer(_ words: [String]) throws -> ProgramResult {
  try Program.run(words, environment: ["PATH": "/usr/sbin:/sbin:/usr/bin:/bin"])
}

/// What a test has added to the machine must go; should it stay all the same, whoever runs the test is told.
private func remove(_ words: [String]) {
  guard let result = try? administer(words) else { return }
  if result.ending == .ok { return }
  try? FD(2).writeAll("\(words.joined(separator: " ")) failed: \(result.errors)".utf8)
}

/// An account of the machine's that is there for one test; root only.
package final class TemporaryAccount: Sendable {
  package let account: Account
  /// They stay as long as it does.
  private let groups: [TemporaryGroup]

  /// Makes it, with a group of its own or the one that is given, and as a member of others.
  ///
  /// With `called` its name is that, and may be any text; `number` is its user ID, if any one will not do;
  /// with `twin` it has the number of another account.
  package init(
    called chosen: String? = nil, number: UInt32? = nil, twin: TemporaryAccount? = nil,
    primaryGroup: TemporaryGroup? = nil, groups: [TemporaryGroup] = []
  ) throws {
    self.groups = groups + (primaryGroup.map { [$0] } ?? [])
    let name = chosen ?? newName()
    var words = ["useradd", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/bin/sh"]
    if let number { words += ["--uid", "\(number)"] }
    if chosen != nil { words.append("--badname") }
    if let twin { words += ["--non-unique", "--uid", "\(twin.account.uid)"] }
    if let primaryGroup { words += ["--gid", primaryGroup.name] }
    if !groups.isEmpty { words += ["--groups", groups.map(\.name).joined(separator: ",")] }
    let result = try administer(words + [name])
    guard result.status == 0, let account = Account.named(name) else {
      throw MountedStore.Failure(words: "can't make an account: \(result.errors)")
    }
    self.account = account
  }

  /// A name that no other test has.
  package static func unusedName() -> String { newName() }

  /// Makes it a member of one more group, which its running processes are not told.
  package func join(_ group: TemporaryGroup) throws {
    let result = try administer(["usermod", "--append", "--groups", group.name, account.name])
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
  }

  /// Takes it out of a group, which its running processes are not told.
  package func leave(_ group: TemporaryGroup) throws {
    let result = try administer(["gpasswd", "--delete", account.name, group.name])
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
  }

  /// Has the login called otherwise meanwhile; the number stays.
  package func renamed<Result>(_ body: (Account) throws -> Result) throws -> Result {
    let name = newName()
    func rename(_ from: String, to: String) throws {
      let result = try administer(["usermod", "--login", to, from])
      guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
    }
    try rename(account.name, to: name)
    defer { try? rename(name, to: account.name) }
    return try body(Account(name: name, uid: account.uid, gid: account.gid, home: account.home))
  }

  /// Gives each of two accounts the other one's number; what is known of them here stays as it was.
  package func exchangeNumbers(with other: TemporaryAccount) throws {
    let between = max(account.uid, other.account.uid) + 500_000
    for (name, number) in [
      (account.name, between), (other.account.name, account.uid), (account.name, other.account.uid),
    ] {
      let result = try administer(["usermod", "--uid", "\(number)", name])
      guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
    }
  }

  /// The first of the IDs that useradd(8) has given it for its user namespaces.
  ///
  /// Nil where the machine does not do that.
  package var firstAdditionalID: UInt32? {
    let lines = FD.text(of: "/etc/subuid", limit: 1 << 24)?.split(separator: "\n") ?? []
    let fields = lines.last { $0.hasPrefix("\(account.name):") }?.split(separator: ":") ?? []
    return fields.count == 3 ? UInt32(fields[1]) : nil
  }

  deinit { remove(["userdel", account.name]) }
}

/// A group of the machine's that is there for one test; root only.
package final class TemporaryGroup: Sendable {
  package let name: String

  package init() throws {
    name = newName()
    let result = try administer(["groupadd", name])
    guard result.status == 0 else {
      throw MountedStore.Failure(words: "can't make a group: \(result.errors)")
    }
  }

  deinit { remove(["groupdel", name]) }
}
