// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A store with apps that want what is private: `org.example.player` has said why it wants all of it,
/// `org.example.mute` has not, and `org.example.old` is from before apps had to.
final class ConsentFixture {
  static let player = "org.example.player"
  static let mute = "org.example.mute"
  static let old = "org.example.old"
  /// Where the sources are, and what tests use of them.
  static let root = Checkout.root
  static let fixtures = root + "/Tests/Fixtures"
  let fixture: RunFixture

  private let isRootless: Bool

  /// `before` are words before the command that mounts the store.
  init(rootless: Bool = false, initOptions: [String] = [], before: [String] = []) throws {
    isRootless = rootless
    fixture = try RunFixture(rootless: rootless, initOptions: initOptions, before: { _ in before })
    let texts = ["AppleMusic", "PhotoLibrary", "PhotoLibraryAdd", "Contacts", "Calendars", "Reminders"].map {
      "<key>NS\($0)UsageDescription</key><string>Shows your \($0).</string>"
    }
    try fixture.install("Player", info: texts.joined())
    try fixture.install("Mute")
    try fixture.install("Old", info: "<key>DTSDKName</key><string>iphoneos9.3</string>")
    let made = try fixture.shell(
      """
      cd "$POINT/Users/\(fixture.user.name)" \
        && mkdir -p Music/Music Music/Other Pictures/All.photoslibrary && echo song > Music/Music/song \
        && echo other > Music/Other/file && echo photo > Pictures/All.photoslibrary/1
      """)
    try #require(made.status == 0, "\(made)")
  }

  var home: String { "\(fixture.mounted.point)/Users/\(fixture.user.name)" }

  /// Runs a script as an app; `$HOME_OF_USER` is the user's home.
  func inside(_ script: String, app: String = ConsentFixture.player) throws -> ProgramResult {
    try shell("inside \(app) \(quoted(script))")
  }

  /// Runs a script as the user: `inside APP SCRIPT` runs one as an app, `agent ANSWER...` begins an agent
  /// that writes to `$agent`, `decide allow|deny SERVICE` decides for the player.
  func shell(_ script: String, as account: Account? = nil) throws -> ProgramResult {
    let mounted = fixture.mounted
    let socket = try isRootless ? mounted.store + "/state/control.sock" : mounted.socket()
    let agent = Self.fixtures + "/agent.py"
    return try fixture.shell(
      """
      inside() { insula run --env HOME_OF_USER='\(home)' "$1" -- sh -c "$2"; }
      agent() {
        agent=$(mktemp)
        timeout 100 python3 '\(agent)' '\(socket)' "$@" > $agent 2>&1 &
        agentpid=$!
        until grep -q ready $agent; do kill -0 $agentpid || { cat $agent; exit 3; }; sleep 0.02; done
        # It is one as soon as its request has arrived.
        sleep 0.1
      }
      decide() {
        python3 - '\(socket)' "$@" <<'END'
      import json, socket, sys
      s = socket.socket(socket.AF_UNIX)
      s.connect(sys.argv[1])
      asked = {"app": "\(Self.player)", "service": sys.argv[3]}
      if sys.argv[2] != "reset": asked["as"] = sys.argv[2]
      s.sendall((json.dumps({"verb": "consent", "consent": {"decide": asked}}) + "\\n").encode())
      reply = json.loads(s.makefile().readline())
      print(reply["consents"][0]["state"] if "consents" in reply else reply)
      END
      }
      states() {
        python3 - '\(socket)' <<'END'
      import json, socket, sys
      s = socket.socket(socket.AF_UNIX)
      s.connect(sys.argv[1])
      asked = {"verb": "consent", "consent": {"list": {"app": "\(Self.player)"}}}
      s.sendall((json.dumps(asked) + "\\n").encode())
      reply = json.loads(s.makefile().readline())
      for c in reply.get("consents", []): print(c["service"], c["state"])
      if "consents" not in reply: print(reply)
      END
      }
      \(script)
      """, as: account)
  }

  /// The state of a service, as the daemon tells it.
  func state(of service: String) throws -> String {
    let lines = try shell("states").output.split(separator: "\n")
    return lines.first { $0.hasPrefix(service + " ") }.map { String($0.dropFirst(service.count + 1)) }
      ?? "none"
  }
}

/// As one word of a shell.
private func quoted(_ text: String) -> String {
  let inner = text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
  return "'\(inner)'"
}
