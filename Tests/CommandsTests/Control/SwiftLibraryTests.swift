// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import Foundation
internal import JSON
internal import LinuxIO
internal import Policy
internal import Synchronization
internal import TestSupport
internal import Testing

/// The Swift module InsulaApp, as a program of its own has it.
@Suite struct SwiftLibraryTests {
  private static let program = URL(fileURLWithPath: Program.insula).deletingLastPathComponent()
    .appendingPathComponent("insula-app-caller").path

  private func run(_ daemon: FakeDaemon, photo: String = "/none") throws -> [String] {
    let result = try Program.run(["timeout", "60", Self.program, photo], environment: daemon.inside)
    try #require(result.status == 0, "\(result)")
    return result.output.split(separator: "\n").map(String.init)
  }

  @Test func everythingCanBeAsked() throws {
    let place = Mutex<GrantedPlace?>(nil)
    let daemon = try FakeDaemon { call in
      let grants = place.withLock { $0.map { [$0] } ?? [] }
      func consent(_ service: PrivacyService, _ state: ConsentState) -> ControlAnswer {
        .reply(
          .consents([
            ConsentStatus(identifier: FakeDaemon.identifier, user: 501, service: service, state: state)
          ]))
      }
      switch call.request {
      case .path: return .reply(.path("Users/anna/Data/Documents"))
      case .grants: return .reply(.grants(GrantPage(places: grants, next: nil, version: "v1")))
      case .grantChange(from: "v1"): return .reply(.grants(GrantPage(places: [], next: nil, version: "v2")))
      case .consent: return consent(.photos, .restricted)
      case .requestConsent(let service): return consent(service, .denied)
      case .openPanel: return .reply(.grants(GrantPage(places: grants, next: nil)))
      case .items:
        return .reply(.items(ItemPage([.object(["title": .string("Song")])], next: "1.2.3")))
      case .addPhoto: return .reply(.done)
      case .awaitOpened: return .reply(.opened(["Users/anna/One.txt", "Users/anna/Two.txt"]))
      default: return nil
      }
    }
    let granted = try daemon.place("Users/anna/Letter.txt")
    place.withLock { $0 = granted }
    let data = daemon.tree + "/Users/anna/Data"
    try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
    try Data().write(to: URL(fileURLWithPath: data + "/a.jpg"))
    let lines = try run(daemon, photo: data + "/a.jpg")
    let root = daemon.tree
    let home = "\(root)/Users/anna"
    #expect(
      lines.prefix(9) == [
        "information com.example.note Note ABCDE12345 \(root)/Applications/Note.app \(home)/Data \(home) 501 "
          + "[] []",
        "path \(home)/Data/Documents", "grants \(home)/Letter.txt true false at v1", "status restricted",
        "request denied", "panel \(home)/Letter.txt", #"items [{"title":"Song"}] 1.2.3"#, "photo added",
        "opened \(home)/One.txt, \(home)/Two.txt",
      ], "\(lines)")
    #expect(lines.last?.hasPrefix("call {") == true, "\(lines)")
    let asked = daemon.asked
    let panel = PanelRequest(.save, name: "Letter.txt", types: ["public.text", ".md"])
    #expect(asked.contains(ControlRequest.openPanel(panel)))
    let added = asked.compactMap { request -> AddedPhoto? in
      if case .addPhoto(let photo) = request { photo } else { nil }
    }
    #expect(added.map(\.file) == ["a.jpg"] && added.first?.token?.count == 32, "\(added)")
  }

  /// What is refused, or makes no sense, is an error with its number and a sentence.
  @Test func refusalsAreErrors() throws {
    let daemon = try FakeDaemon { _ in .refusal("it was refused", .EPERM) }
    let data = daemon.tree + "/Users/anna/Data"
    try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
    let lines = try run(daemon, photo: Self.program)
    for name in ["path", "grants", "status", "request", "panel", "items", "opened"] {
      #expect(lines.contains("\(name) failed 1 it was refused"), "\(name): \(lines)")
    }
    #expect(lines.contains { $0.hasPrefix("photo failed 22 the file is not in the app's home") }, "\(lines)")
    let silent = try FakeDaemon { _ in .reply(.done) }
    for line in try run(silent).dropFirst() where !line.hasPrefix("call") && !line.hasPrefix("grants") {
      #expect(line.contains(" failed "), "\(line)")
    }
  }

  @Test func programThatIsNoAppIsTold() throws {
    let result = try Program.run([Self.program], environment: ["INSULA_SOCKET": "/nonexistent/app.sock"])
    #expect(result.output == "no app\n", "\(result)")
  }
}
