// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import Foundation
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// `insula add-photo`, in an app.
@Suite struct AddPhotoCommandTests {
  private let shell: Shell

  init() throws { shell = try Shell() }

  /// Puts empty files into the app's home.
  private func write(_ names: [String], for daemon: FakeDaemon) throws -> [String] {
    let data = URL(fileURLWithPath: daemon.tree + "/Users/anna/Data")
    try FileManager.default.createDirectory(at: data, withIntermediateDirectories: true)
    for name in names { try Data().write(to: data.appendingPathComponent(name)) }
    return names.map { data.path + "/" + $0 }
  }

  private func added(_ daemon: FakeDaemon) -> [AddedPhoto] {
    daemon.asked.compactMap { if case .addPhoto(let photo) = $0 { photo } else { nil } }
  }

  @Test func filesAreNamedBelowTheHome() throws {
    let daemon = try FakeDaemon { call in
      if case .addPhoto = call.request { .reply(.done) } else { nil }
    }
    let files = try write(["a.jpg", "b c.png"], for: daemon)
    let result = daemon.runInside(shell, "add-photo", files[0], files[1])
    #expect(result.code == .ok && result.output.isEmpty && result.errors.isEmpty, "\(result)")
    #expect(added(daemon).map(\.file) == ["a.jpg", "b c.png"])
    #expect(Set(added(daemon).map(\.token)).count == 2)
  }

  @Test func othersGoOnAfterOneThatFails() throws {
    let daemon = try FakeDaemon { call in
      guard case .addPhoto(let photo) = call.request else { return nil }
      return photo.file == "a.jpg" ? .refusal("the file is no photo\u{7}", .EINVAL) : .reply(.done)
    }
    let files = try write(["a.jpg", "b.jpg"], for: daemon)
    let result = daemon.runInside(shell, "add-photo", "/etc/hostname", "/none/x\u{7}", files[0], files[1])
    #expect(result.code == .failed, "\(result)")
    let lines = result.errors.split(separator: "\n")
    #expect(lines.count == 3 && lines[0].contains("copy the file to there first"), "\(result)")
    #expect(lines[1].contains("/none/x?: ") && lines[2].hasSuffix("a.jpg: the file is no photo?"))
    #expect(added(daemon).map(\.file) == ["a.jpg", "b.jpg"])
  }

  /// Nobody there is no refusal.
  @Test(arguments: [(ConsentState.notDetermined, ExitCode.undecided), (.denied, .notPermitted)])
  func refusalEndsIt(state: ConsentState, code: ExitCode) throws {
    let daemon = try FakeDaemon { call in
      guard case .consent = call.request else { return .refusal("nobody is there", .EPERM) }
      return .reply(
        .consents([
          ConsentStatus(identifier: FakeDaemon.identifier, user: 501, service: .photosAdd, state: state)
        ]))
    }
    let files = try write(["a.jpg", "b.jpg"], for: daemon)
    let result = daemon.runInside(shell, "add-photo", files[0], files[1])
    #expect(result.code == code && result.errors == "insula: nobody is there\n", "\(result)")
    #expect(added(daemon).count == 1)
  }
}
