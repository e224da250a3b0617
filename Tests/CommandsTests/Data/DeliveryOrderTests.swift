// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Daemon
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// Requests to deliver that no command would make.
@Suite(.enabled(if: MountedStore.isPossible)) struct DeliveryOrderTests {
  private func ask(_ line: Data, _ fixture: AppFixture, as uid: UInt32 = 0) throws -> ControlReply {
    let request = try JSONDecoder().decode(ControlRequest.self, from: line)
    let daemons = ControlPlace(uid: uid, runtimeDirectory: nil).daemons()
    let found = try #require(daemons.first { $0.status.store == fixture.store })
    return try found.client.ask(request, with: nil)
  }

  /// A request to the daemon that no command would make.
  @Test(
    arguments: [
      (".deliver-1-x", "../../x", 22), (".deliver-1-x", "a/b", 22), (".deliver-1-x", "", 22),
      (".deliver-1-x", "..", 22),
      (".deliver-1-x", "a\0b", 22), ("com.example.own", "x", 22), ("../Containers/.deliver-1-x", "x", 22),
      (".deliver-1-none", "x", 2), (".deliver-1-link", "x", 22), (".deliver-1-roots", "x", 22),
      (".deliver-1-twice", "x", 22),
    ] as [(String, String, Int32)])
  func ordersToDeliverAreNotBelieved(copy: String, name: String, errno: Int32) throws {
    let fixture = try AppFixture(isMounted: true)
    #expect(try fixture.nobody("path", "com.example.editor", "home").status == 0)
    let containers = fixture.mounted.path("Users/nobody/Library/Containers")
    try fixture.shell(
      "echo x >.deliver-1-x; ln -s nowhere .deliver-1-link; "
        + "echo x >.deliver-1-twice; ln .deliver-1-twice twice",
      in: containers)
    try fixture.rootShell("echo x >.deliver-1-roots", in: containers)
    func request(_ copy: String, _ name: String, home: String = "nobody", app: String = "com.example.editor")
      throws -> ControlReply
    {
      let delivery = ["copy": copy, "name": name, "home": home, "identifier": app]
      let object: [String: Any] = [
        "verb": "order",
        "order": [
          "action": "deliver", "home": home, "delivery": delivery, "allowsDowngrade": false,
          "keepsData": false,
        ],
      ]
      return try ask(JSONSerialization.data(withJSONObject: object), fixture)
    }
    let reply = try request(copy, name)
    #expect(reply.errno == Errno(errno), "\(reply)")
    for (home, app) in [
      ("none", "com.example.editor"), ("../nobody", "com.example.editor"), ("nobody", "com.example.own"),
    ] {
      #expect(try !request(".deliver-1-x", "x", home: home, app: app).isGood)
    }
    let good = try request(".deliver-1-x", "x")
    #expect(good == .path("\(AppFixture.container)/Data/Documents/Inbox/x"))
  }

  @Test func nobodyDeliversToOthers() throws {
    let fixture = try AppFixture(isMounted: true)
    #expect(try fixture.nobody("path", "com.example.editor", "home").status == 0)
    let containers = fixture.mounted.path("Users/nobody/Library/Containers")
    try fixture.shell("echo x >.deliver-1-x", in: containers)
    let object: [String: Any] = [
      "verb": "order",
      "order": [
        "action": "deliver", "allowsDowngrade": false, "keepsData": false,
        "delivery": [
          "copy": ".deliver-1-x", "name": "x", "home": "nobody", "identifier": "com.example.editor",
        ],
      ],
    ]
    let line = try JSONSerialization.data(withJSONObject: object)
    let refused = Mutex<ControlReply?>(nil)
    let thread = try JoinableThread(name: "stranger") {
      guard clx_thread_setresuid(54321) == 0 else { return }
      let reply = try? ask(line, fixture, as: 54321)
      refused.withLock { $0 = reply }
    }
    thread.join()
    let reply = try #require(refused.withLock { $0 })
    #expect(reply.errno == .EPERM, "\(reply)")
    #expect(try ask(line, fixture).isGood)
  }
}
