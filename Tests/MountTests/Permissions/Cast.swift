// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport

/// Who takes part in the tests of permissions: accounts of the machine, made for them.
enum Person: String, CaseIterable {
  case root
  /// Whose things they are, usually.
  case owner
  /// Has the team for a primary group.
  case primary
  /// Is in the team besides.
  case member
  case stranger
}

/// The people of a test and a mounted store, with a shell for each of them.
///
/// In their shells `$owner`, `$primary`, `$member` and `$stranger` are the names of their accounts, `$team`
/// that of the group that two of them are in; `$store` is where the store is.
final class Cast {
  let mounted: MountedStore
  let team: TemporaryGroup
  private let accounts: [Person: TemporaryAccount]
  private var shells: [Person: PersonShell] = [:]
  /// Where all can work, outside of what is tested.
  let workshop: TemporaryDirectory
  /// Further words that shells which are not there yet will know.
  var words: [String: String] = [:]

  /// With a store of root's, or one of the owner's.
  ///
  /// `before` goes before the program that mounts it.
  init(rootless: Bool = false, before: (_ workshop: String) throws -> [String] = { _ in [] }) throws {
    workshop = try TemporaryDirectory(mode: 0o777)
    let team = try TemporaryGroup()
    self.team = team
    let owner = try TemporaryAccount()
    accounts = [
      .owner: owner, .primary: try TemporaryAccount(primaryGroup: team),
      .member: try TemporaryAccount(groups: [team]), .stranger: try TemporaryAccount(),
    ]
    mounted = try MountedStore.mounted(
      owner: rootless ? owner.account : nil, before: before(workshop.path))
  }

  // An account can't be removed while someone works as it.
  deinit { shells = [:] }

  /// The account of someone; nil for root.
  func account(_ person: Person) -> TemporaryAccount? { accounts[person] }

  /// The words that stand for somebody's name and the group's.
  var names: [String: String] {
    var names = words.merging(["team": team.name, "store": mounted.store]) { $1 }
    for (person, account) in accounts { names[person.rawValue] = account.account.name }
    return names
  }

  /// Runs a line of shell as somebody, in a directory.
  func run(_ line: String, as person: Person, in directory: String) throws -> ProgramResult {
    if let shell = shells[person] { return try shell.run(line, in: directory) }
    let shell = try PersonShell(
      accounts[person]?.account, named: person.rawValue, names: names, workshop: workshop)
    shells[person] = shell
    return try shell.run(line, in: directory)
  }

  /// Lets somebody begin again, with the groups that they have by now.
  func loginAgain(_ person: Person) { shells[person] = nil }

  /// A directory of the owner's in the mounted tree, for one table; others may look into it.
  func makePlace(_ name: String) throws -> String {
    let place = mounted.path("Users/Shared/" + name)
    let owner = accounts[.owner]?.account
    let made = try Program.run([
      "install", "-d", "-m", "755", "-o", "\(owner?.uid ?? 0)", "-g", "\(owner?.gid ?? 0)", place,
    ])
    guard made.status == 0 else { throw MountedStore.Failure(words: made.errors) }
    return place
  }
}

/// A shell that runs as somebody; it ends with this object.
///
/// One process for all of their lines: to become someone else for each would take longer than what is tested.
private final class PersonShell {
  private let process = Process()
  private let input = Pipe()
  private let answers = Pipe()
  private let name: String
  private let workshop: TemporaryDirectory

  init(_ account: Account?, named name: String, names: [String: String], workshop: TemporaryDirectory) throws
  {
    self.name = name
    self.workshop = workshop
    let become = account.map { ["setpriv", "--reuid=\($0.uid)", "--regid=\($0.gid)", "--init-groups"] } ?? []
    let tools = URL(fileURLWithPath: Program.insula).deletingLastPathComponent().path
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = become + ["sh"]
    process.environment = names.merging([
      "PATH": "\(tools):/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C", "HOME": workshop.path,
      "tools": tools,
    ]) { $1 }
    process.standardInput = input
    process.standardOutput = answers
    try Program.withSignalsUnblocked { try process.run() }
    try send("umask 022\n" + Self.vocabulary)
  }

  deinit {
    try? input.fileHandleForWriting.close()
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// Words of the shells beyond those of a machine.
  private static let vocabulary = """
    # Whether what test says of a file or a directory is what then happens.
    agrees() {
      said= did=
      for right in r w x; do test -$right "$1" && said=$said$right; done
      if test -d "$1"; then
        ls "$1" >/dev/null 2>&1 && did=${did}r
        (: > "$1/agrees.$$" && mkdir "$1/agrees.$$.d") 2>/dev/null && did=${did}w
        rm -f "$1/agrees.$$" 2>/dev/null; rmdir "$1/agrees.$$.d" 2>/dev/null
        (cd "$1") 2>/dev/null && did=${did}x
      else
        cat "$1" >/dev/null 2>&1 && did=${did}r
        dd if=/dev/null of="$1" conv=notrunc 2>/dev/null && did=${did}w
        "./$1" >/dev/null 2>&1 && did=${did}x
      fi
      test "$said" = "$did" || { echo "test says '$said', but then it is '$did'"; return 1; }
    }
    # A system call that no program of a machine makes, such as: call exchange A B
    call() {
      answer=$( (IFS='	'; echo "$*") | insula-client)
      case $answer in
      ok*) ;;
      1) echo 'Operation not permitted' >&2; return 1 ;;
      *) echo "error $answer" >&2; return 1 ;;
      esac
    }

    """

  private func send(_ text: String) throws {
    try input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
  }

  func run(_ line: String, in directory: String) throws -> ProgramResult {
    let output = workshop.appending(name + ".out")
    let errors = workshop.appending(name + ".err")
    try send(
      "( cd '\(directory)' || exit 99\n\(line)\n) </dev/null >'\(output)' 2>'\(errors)'; echo $?\n")
    let fd = FD(answers.fileHandleForReading.fileDescriptor)
    var answer: [UInt8] = []
    while answer.last != UInt8(ascii: "\n") {
      guard try fd.waitUntilReadable(milliseconds: patience), let bytes = try fd.readAvailable(limit: 64),
        !bytes.isEmpty
      else { throw MountedStore.Failure(words: "no answer to '\(line)'") }
      answer += bytes
    }
    let status = Int32(String(decoding: answer.dropLast(), as: UTF8.self)) ?? -1
    return ProgramResult(
      status: status, output: FD.text(of: output, limit: 1 << 20) ?? "",
      errors: FD.text(of: errors, limit: 1 << 20) ?? "")
  }
}
