// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A mounted store with an app that an ordinary user runs: the machine's store, or one of their own.
final class RunFixture {
  static let identifier = "org.example.notes"
  let mounted: MountedStore
  /// Who runs it.
  let user: Account
  private let temporaryAccount: TemporaryAccount?

  var container: String { mounted.path("Users/\(user.name)/Library/Containers/\(Self.identifier)") }
  var bundle: String { mounted.path("Applications/Notes.app") }

  /// `entitlements` are what is in the dictionary of a property list; `home` gives options of `user add`, and
  /// `options` are those of the mount.
  init(
    rootless: Bool = false, entitlements: String? = nil, store: String? = nil, initOptions: [String] = [],
    options: String? = nil, groups: [TemporaryGroup] = [],
    home: (TemporaryDirectory) throws -> [String] = { _ in [] },
    before: (_ user: Account) -> [String] = { _ in [] }
  ) throws {
    if rootless {
      user = Account(name: "nobody", uid: 65534, gid: 65534, home: "/")
      temporaryAccount = nil
      mounted = try MountedStore(owner: user, store: store, initOptions: initOptions)
    } else {
      let account = try TemporaryAccount(groups: groups)
      user = account.account
      temporaryAccount = account
      mounted = try MountedStore(owner: nil, store: store, initOptions: initOptions)
    }
    if store != nil { try mounted.temporary.makeDirectory("store", mode: 0o777) }
    try mounted.mount(options: options, before: before(user))
    try succeed("identity", "new", "tester", "--team", "ABCDE12345")
    let root = mounted.temporary.appending("store/root.pem")
    try succeed("identity", "export", "tester", "--certificate", root)
    try succeed("trust", "add", root, "--store", mounted.store)
    try succeed(["user", "add", user.name, "--store", mounted.store] + (try home(mounted.temporary)))
    try install("Notes", entitlements: entitlements)
  }

  /// Makes an app, signs it and installs it for everyone; `options` are of `new-app`.
  ///
  /// `info` is more of the dictionary in its Info.plist, and `executable` takes the place of its program;
  /// `changing` may change more before it is signed.
  func install(
    _ name: String, entitlements: String? = nil, options: [String] = [], info: String = "",
    executable: String? = nil, changing: (_ bundle: String) throws -> Void = { _ in }
  ) throws {
    let apps = "store/\(name)-made"
    let directory = mounted.temporary.appending(apps)
    try mounted.temporary.makeDirectory(apps, mode: 0o777)
    try succeed(["new-app", name, directory] + options)
    if !info.isEmpty {
      let place = "\(apps)/\(name).app/Contents/Info.plist"
      let text = try #require(mounted.temporary.text(of: place)).split(separator: "</dict>\n</plist>")
      try mounted.temporary.write(text[0] + info + "</dict>\n</plist>", to: place)
    }
    if let executable {
      let copy = ["cp", executable, "\(directory)/\(name).app/Contents/MacOS/\(name)"]
      try #require(try Program.run(copy).status == 0, "\(copy)")
    }
    try changing("\(directory)/\(name).app")
    var words = ["sign", "\(directory)/\(name).app", "--identity", "tester"]
    if let entitlements {
      let plist = "<plist version=\"1.0\"><dict>\(entitlements)</dict></plist>"
      words += ["--entitlements", try mounted.temporary.write(plist, to: "\(apps)/rights")]
    }
    try succeed(words)
    try succeed("install", "\(directory)/\(name).app", "--store", mounted.store)
  }

  func succeed(_ words: String...) throws { try succeed(words) }

  func succeed(_ words: [String]) throws {
    let result = try mounted.run(words)
    try #require(result.status == 0, "insula \(words.joined(separator: " ")): \(result.errors)")
  }

  /// Runs something as the user, with this store's own words at hand.
  ///
  /// `run COMMAND...` runs that as the app; `insula VERB...` is about this store; `running` waits until so
  /// many apps run.
  func shell(_ script: String, as account: Account? = nil) throws -> ProgramResult {
    let helpers = """
      insula() { verb=$1; shift; "$INSULA" "$verb" --store "$POINT" "$@"; }
      run() { "$INSULA" run --store "$POINT" "$APP" -- "$@"; }
      running() {
        until [ "$(insula ps --json | grep -c identifier)" = "$1" ] || [ $((w+=1)) -gt 6000 ]; do
          sleep 0.02
        done
      }
      """
    let user = account ?? self.user
    let become =
      user.uid == 0
      ? [] : ["setpriv", "--reuid=\(user.uid)", "--regid=\(user.gid)", "--clear-groups"]
    return try Program.run(
      become + ["timeout", "300", "sh", "-c", helpers + "\n" + script],
      environment: [
        "INSULA": Program.insula, "POINT": mounted.point, "APP": Self.identifier, "DATA": container + "/Data",
        "BUNDLE": bundle, "HOME": "/nonexistent", "XDG_RUNTIME_DIR": "", "XDG_DATA_HOME": "",
        "SECRET": "told",
      ])
  }

  /// Runs something as the app.
  func inside(_ script: String) throws -> ProgramResult {
    try shell("run sh -c \"$SCRIPT\"", with: script)
  }

  private func shell(_ script: String, with inner: String) throws -> ProgramResult {
    try shell("SCRIPT=$(cat <<'END-OF-SCRIPT'\n\(inner)\nEND-OF-SCRIPT\n)\n" + script)
  }

  /// The head of a script in Python: `ask` sends something to the socket that is the first argument, and
  /// gives the answer and how many descriptors came along with it.
  ///
  /// The view that was asked for is there for as long as its mount, which the process keeps.
  static let asking = """
    import socket, sys, json
    kept = []
    def ask(line):
        s = socket.socket(socket.AF_UNIX)
        s.connect(sys.argv[1])
        s.sendall((json.dumps(line) + "\\n").encode())
        answer, descriptors, _, _ = socket.recv_fds(s, 65536, 1)
        kept.extend(descriptors)
        return answer.decode(), len(descriptors)
    """

  /// Sends a line to the daemon, as a program of somebody's own would, and gives what comes back.
  func ask(_ line: String, as account: Account? = nil) throws -> String {
    let script = """
      import socket, sys
      s = socket.socket(socket.AF_UNIX)
      s.connect(sys.argv[1])
      s.sendall(sys.stdin.readline().encode())
      print(s.makefile().readline())
      """
    let socket = try mounted.socket()
    let command = "python3 -c \"$(cat <<'END'\n\(script)\nEND\n)\" \(socket) <<'LINE'\n\(line)\nLINE"
    let result = try shell(command, as: account)
    return result.output + result.errors
  }

  static let root = Account(name: "root", uid: 0, gid: 0, home: "/root")
}
