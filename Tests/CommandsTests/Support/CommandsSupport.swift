// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import LinuxIO
internal import Policy
internal import Synchronization
internal import TestSupport

/// Runs commands in this process, in a world of the test's own.
final class Shell: Sendable {
  /// How a command ended, and what it printed.
  struct Result {
    let code: ExitCode
    let output: String
    let errors: String
  }

  private final class Paper: Sendable {
    private let bytes = Mutex<[UInt8]>([])
    var text: String { String(decoding: bytes.withLock { $0 }, as: UTF8.self) }
    func write(_ more: [UInt8]) { bytes.withLock { $0 += more } }
  }

  let temporary: TemporaryDirectory

  private static let users: [String: UInt32] = ["root": 0, "anna": 501, "bert": 502]
  private static let groups: [String: UInt32] = ["wheel": 0, "staff": 20]
  /// The accounts of a machine of the test's own.
  static let names = AccountNames(
    userName: { uid in users.first { $0.value == uid }?.key },
    groupName: { gid in groups.first { $0.value == gid }?.key }, uid: { users[$0] }, gid: { groups[$0] })

  init() throws { temporary = try TemporaryDirectory() }

  func run(_ words: String...) -> Result { run(words) }

  func run(
    _ words: [String], input: String = "", isTerminal: Bool = false, ahead: Int64 = 0,
    as uid: UInt32 = ProcessID.user, machineStore: String? = nil, variables: [String: String] = [:]
  ) -> Result {
    let output = Paper()
    let errors = Paper()
    let console = Console(
      output: { output.write($0) }, errors: { errors.write($0) }, isTerminal: isTerminal)
    var context = Context(
      environment: ["PATH": "/usr/bin:/bin", "XDG_DATA_HOME": temporary.appending("data")]
        .merging(variables) { $1 },
      uid: uid, home: temporary.path, currentDirectory: temporary.path, console: console)
    // Attributes that any filesystem keeps, so that no mount is needed.
    context.aliases = XattrAliases(acl: "user.test.acl", flags: "user.test.flags", copies: ["user.test.copy"])
    context.names = Self.names
    if let machineStore { context.builtInMachineStore = machineStore }
    context.endAfter = { _ in }
    context.machineConfiguration = temporary.appending("etc/insula/insula.conf")
    context.now = { Int64(time(nil)) + ahead }
    context.input = { limit in Array(input.utf8.prefix(limit)) }
    let code = Insula.run(words, in: context)
    return Result(code: code, output: output.text, errors: errors.text)
  }
}

/// The files of the repository.
enum Repository {
  static var root: String { Checkout.root }
}
