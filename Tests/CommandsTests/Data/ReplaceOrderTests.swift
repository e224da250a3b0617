// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Requests to exchange containers that no command would make.
@Suite(.enabled(if: MountedStore.isPossible)) struct ReplaceOrderTests {
  private func order(
    _ fixture: AppFixture, _ copy: String, kind: String? = "group", app: String = "group.com.example",
    home: String = "nobody"
  ) throws -> ControlReply {
    var new = ["copy": copy, "home": home, "identifier": app]
    new["kind"] = kind
    let object: [String: Any] = [
      "verb": "order",
      "order": ["action": "replaceData", "newData": new, "allowsDowngrade": false, "keepsData": false],
    ]
    let line = try JSONSerialization.data(withJSONObject: object)
    let request = try JSONDecoder().decode(ControlRequest.self, from: line)
    let daemons = ControlPlace(uid: 0, runtimeDirectory: nil).daemons()
    let found = try #require(daemons.first { $0.status.store == fixture.store })
    return try found.client.ask(request, with: nil)
  }

  @Test func ordersToReplaceAreNotBelieved() throws {
    let fixture = try AppFixture(isMounted: true)
    for place in ["home", "group:group.com.example", "icloud"] {
      #expect(try fixture.nobody("path", "com.example.editor", place).status == 0)
    }
    let library = fixture.mounted.path("Users/nobody/Library")
    let groups = library + "/Group Containers"
    try fixture.shell(
      """
      mkdir .import-1-x; echo new >.import-1-x/file; ln -s .import-1-x .import-1-link; echo x >.import-1-file
      echo old >group.com.example/file; mkdir '../Mobile Documents/.import-1-x' ../Containers/.import-1-x
      """, in: groups)
    try fixture.rootShell("mkdir .import-1-roots", in: groups)
    for copy in [
      ".import-1-link", ".import-1-file", ".import-1-roots", ".import-1-none", "other", "", "..",
      "../Containers/.import-1-x", ".import-1-x/../other",
    ] {
      #expect(try !order(fixture, copy).isGood, "\(copy)")
    }
    for (kind, app) in [
      ("group", "group.com.other"), ("cloud", "iCloud.com.x"), ("data", "com.example.editor"),
      ("data", "group.com.example"), (nil, "group.com.example"), ("group", "com.example.editor"),
    ] {
      #expect(try !order(fixture, ".import-1-x", kind: kind, app: app).isGood, "\(kind ?? "none") \(app)")
    }
    #expect(try !order(fixture, ".import-1-x", home: "../nobody").isGood)
    #expect(FD.text(of: groups + "/group.com.example/file", limit: 10) == "old\n")
    #expect(try order(fixture, ".import-1-x") == .done)
    #expect(FD.text(of: groups + "/group.com.example/file", limit: 10) == "new\n")
    #expect(access(groups + "/.import-1-x", F_OK) == -1 && Errno.last == .ENOENT)
    let held = fixture.mounted.temporary.appending("store/state/removed")
    let kept = try fixture.rootShell("cat */file", in: held)
    #expect(kept == "old\n")
    let listed = try fixture.nobody("removed", "list")
    #expect(listed.output.contains("group.com.example"), "\(listed)")
  }
}
