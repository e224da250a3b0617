// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// An app must say in its Info.plist why it asks for private data, and one from before there was such a key
/// must not go on when its user refuses: at every start, by every way to ask, and whatever was decided.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct UsageKeyTests {
  /// Makes a call through the app's socket, and prints how it was answered.
  private static let call = """
    import json, os, socket, sys
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ["INSULA_SOCKET"])
    s.sendall((sys.argv[1] + "\\n").encode())
    reply = json.loads(s.makefile().readline())
    print("answered", reply.get("errno", reply.get("consents", [{}])[0].get("state", "ok")))
    """

  private static func items(_ kind: String) -> String {
    "{\"verb\":\"items\",\"kind\":\"\(kind)\",\"limit\":10}"
  }

  private static func request(_ service: String) -> String {
    "{\"verb\":\"request-consent\",\"service\":\"\(service)\"}"
  }

  /// Each way to ask, with the service and the key that it takes: a path in the home, or a call.
  private static let ways: [(service: String, key: String, path: String?, call: String?)] = [
    ("media-library", "NSAppleMusicUsageDescription", "Music/Music", nil),
    ("photos", "NSPhotoLibraryUsageDescription", "Pictures/All.photoslibrary", nil),
    ("contacts", "NSContactsUsageDescription", "Library/Application Support/AddressBook/x", nil),
    ("media-library", "NSAppleMusicUsageDescription", nil, items("songs")),
    ("contacts", "NSContactsUsageDescription", nil, items("contacts")),
    ("calendars", "NSCalendarsFullAccessUsageDescription", nil, items("events")),
    ("reminders", "NSRemindersFullAccessUsageDescription", nil, items("reminders")),
    ("photos", "NSPhotoLibraryUsageDescription", nil, request("photos")),
    ("photos-add", "NSPhotoLibraryAddUsageDescription", nil, request("photos-add")),
    (
      "photos-add", "NSPhotoLibraryAddUsageDescription", nil,
      "{\"verb\":\"add-photo\",\"file\":\"Documents/x.jpg\",\"token\":\"1\"}"
    ),
  ]

  /// Tries a way as an app, which goes on for as long as it is let.
  private func attempt(
    _ fixture: ConsentFixture, _ app: String,
    _ way: (service: String, key: String, path: String?, call: String?)
  ) throws -> ProgramResult {
    let words =
      way.path.map { "ls -d \"$HOME_OF_USER/\($0)\" > /dev/null 2>&1; echo \"told $?\"" }
      ?? "python3 -B -c '\(Self.call)' '\(way.call ?? "")' || echo failed"
    return try fixture.shell(
      """
      SCRIPT=$(cat <<'END-OF-SCRIPT'
      \(words)
      END-OF-SCRIPT
      )
      inside \(app) "$SCRIPT"; echo "$?"
      """)
  }

  private func decide(_ verb: String, _ app: String, _ service: String) -> String {
    "$INSULA consent \(verb) \(app) \(service) --store \"$POINT\" > /dev/null"
  }

  @Test(arguments: [false, true])
  func missingKeyEndsTheAppWhateverWasDecided(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    for way in Self.ways {
      for verb in ["reset", "deny", "allow"] {
        #expect(try fixture.shell(decide(verb, ConsentFixture.mute, way.service)).status == 0)
        // Not the first start alone.
        for _ in 0..<(verb == "reset" ? 2 : 1) {
          let result = try attempt(fixture, ConsentFixture.mute, way)
          #expect(result.output == "137\n", "\(way) \(verb): \(result)")
          #expect(result.errors.contains("has no \(way.key)"), "\(way) \(verb): \(result)")
        }
      }
    }
    // What was decided is told all the same: nothing is asked for by that.
    let list = (
      service: "", key: "", path: String?.none, call: "{\"verb\":\"consent\",\"consent\":{\"list\":{}}}"
    )
    let told = try attempt(fixture, ConsentFixture.mute, (list.service, list.key, list.path, list.call))
    #expect(told.output == "answered authorized\n0\n", "\(told)")
    #expect(try fixture.shell("insula ps").output.contains(ConsentFixture.mute) == false)
  }

  @Test(arguments: [false, true])
  func refusalEndsAnAppFromBeforeTheKeysAtEveryStart(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    let app = ConsentFixture.old
    for way in Self.ways {
      #expect(try fixture.shell(decide("deny", app, way.service)).status == 0)
      for _ in 0..<2 {
        let result = try attempt(fixture, app, way)
        #expect(result.output == "137\n", "\(way): \(result)")
        #expect(result.errors.contains("has no \(way.key)"), "\(way): \(result)")
      }
    }
    // It is asked about without a text of its own, and ended by the answer to a call, too.
    let asked = try fixture.shell(
      decide("reset", app, "photos") + """

        agent deny
        SCRIPT=$(cat <<'END-OF-SCRIPT'
        python3 -B -c '\(Self.call)' '\(Self.request("photos"))' || echo failed
        END-OF-SCRIPT
        )
        inside \(app) "$SCRIPT"; echo "$?"
        wait $agentpid; grep -c number $agent
        """)
    #expect(asked.output == "137\n1\n", "\(asked)")
    // Allowed, it goes on.
    for way in Self.ways.prefix(2) {
      #expect(try fixture.shell(decide("allow", app, way.service)).status == 0)
      let result = try attempt(fixture, app, way)
      #expect(result.output == "told 0\n0\n", "\(way): \(result)")
    }
  }
}
