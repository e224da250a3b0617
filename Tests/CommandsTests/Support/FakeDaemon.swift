// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import JSON
internal import LinuxIO
internal import Synchronization
internal import TestSupport

/// Answers commands as a daemon would, with what the test says; as the daemon of a mount, or of an app.
///
/// Nothing is mounted: the directory `tree` passes for the tree.
final class FakeDaemon: Sendable {
  private final class Requests: Sendable {
    let all = Mutex<[ControlRequest]>([])
  }

  let temporary: TemporaryDirectory
  let tree: String
  private let server: Mutex<ControlServer>
  private let makeServer: @Sendable () throws -> ControlServer
  private let opened: SharedFD
  private let requests = Requests()

  /// What it was asked, but for who it is.
  var asked: [ControlRequest] { requests.all.withLock { $0 } }

  /// `answer` gives nil for what the daemon can't do.
  init(_ answer: @escaping @Sendable (ControlCall) -> ControlAnswer?) throws {
    temporary = try TemporaryDirectory()
    let runtime = try temporary.makeDirectory("insula")
    tree = try temporary.makeDirectory("tree", mode: 0o777)
    let opened = SharedFD(try TemporaryDirectory.open(runtime))
    self.opened = opened
    let status = DaemonStatus(
      pid: ProcessID.own, store: temporary.appending("store"), uuid: "fake", mode: "system",
      mountPoint: tree, counts: [:])
    let own = try JSONText.decode(OwnApp.self, from: Array(Self.app(in: tree).utf8))
    makeServer = { [requests] in
      let server = try opened.use { (directory) throws(Errno) in
        try ControlServer(in: directory, name: Self.name, mode: 0o666) { call in
          switch call.request {
          case .status: return .reply(.status(status))
          case .own: return .reply(.own(own))
          default:
            requests.all.withLock { $0.append(call.request) }
            return answer(call) ?? .refusal("this daemon asks nobody", .EOPNOTSUPP)
          }
        }
      }
      try server.start()
      return server
    }
    server = Mutex(try makeServer())
  }

  /// Puts another daemon in place of this one, as an update does.
  func replace() throws {
    try server.withLock { server in
      server.stop()
      server = try makeServer()
    }
  }

  deinit { server.withLock { $0.stop() } }

  private static let name = "fake.sock"
  static let identifier = "com.example.note"

  private static func app(in tree: String) -> String {
    """
    {"identifier": "\(identifier)", "name": "Note", "version": "1", "build": "1", "team": "ABCDE12345",
     "user": 501, "root": "\(tree)", "bundle": "Applications/Note.app", "executable": "x",
     "home": "Users/anna", "data": "Users/anna/Data", "groups": [], "clouds": []}
    """
  }

  /// By which commands find it: who is root looks elsewhere.
  var outside: [String: String] { ["XDG_RUNTIME_DIR": temporary.path] }
  var inside: [String: String] { ["INSULA_SOCKET": temporary.appending("insula/\(Self.name)")] }

  func run(_ shell: Shell, _ words: String...) -> Shell.Result {
    shell.run(words + ["--store", tree], as: 501, variables: outside)
  }

  func runInside(_ shell: Shell, _ words: String...) -> Shell.Result {
    shell.run(words, as: 501, variables: inside)
  }

  func place(_ path: String) throws -> GrantedPlace {
    let text = """
      {"identifier": "\(Self.identifier)", "user": 501, "path": "\(path)", "access": "read-write",
       "isDirectory": false, "isMissing": false, "granted": 1}
      """
    return try JSONText.decode(GrantedPlace.self, from: Array(text.utf8))
  }
}
