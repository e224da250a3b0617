// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import TestSupport
internal import Testing

/// Where the desktop's sockets are, by the variables that name them.
struct DesktopSocketsTests {
  @Test func displaysOfThisMachineAreFound() {
    for (text, number, screen) in [(":0", "0", nil), ("unix:12.3", "12", "3"), (":99.0", "99", "0")] {
      let display = XDisplay(text)
      #expect(display?.number == number && display?.screen == screen, "\(text)")
      #expect(display?.socket == "/tmp/.X11-unix/X\(number)")
    }
    for text in [
      "", ":", "0", "host:0", "localhost:10.0", ":0.", ":.0", ":a", ":0.0.0", ":/../x", ":123456", "::0",
    ] {
      #expect(XDisplay(text) == nil, "\(text)")
    }
  }

  @Test func addressesOfServersAreRead() {
    #expect(DesktopSockets.pulsePath("unix:/run/user/7/pulse/native") == "/run/user/7/pulse/native")
    #expect(DesktopSockets.pulsePath("{0123}unix:/a/b tcp:host") == "/a/b")
    #expect(DesktopSockets.pulsePath("/a/b") == "/a/b")
    for text in ["", "host", "tcp:host:4713", "unix:a", "{0123"] {
      #expect(DesktopSockets.pulsePath(text) == nil, "\(text)")
    }
    #expect(DesktopSockets.busPath("unix:path=/run/user/7/bus,guid=1a") == "/run/user/7/bus")
    #expect(DesktopSockets.busPath("unix:guid=1a,path=/a%20b;tcp:host=x") == "/a b")
    for text in [
      "", ";", "unix:abstract=/tmp/x", "tcp:host=x", "unix:path=/a%2", "unix:path=/a%zz", "unix:path=/%ff",
    ] {
      #expect(DesktopSockets.busPath(text) == nil, "\(text)")
    }
  }

  /// Like xauth(1): family, address, display, kind, data.
  private func entry(_ family: Int, _ parts: String...) -> [UInt8] {
    func number(_ value: Int) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 0xff)] }
    return number(family) + parts.flatMap { number($0.utf8.count) + Array($0.utf8) }
  }

  @Test func onlyTheDisplaysCookiesAreTaken() throws {
    let display = try #require(XDisplay(":7"))
    let file =
      entry(256, "here", "8", "KIND", "other display") + entry(256, "there", "7", "KIND", "other machine")
      + entry(0, "\u{7f}\0\0\u{1}", "7", "KIND", "internet") + entry(256, "here", "7", "KIND", "mine")
      + entry(65535, "", "", "KIND", "all")
    #expect(
      XAuthority.cookies(in: file, for: display, host: "here")
        == entry(65535, "", "", "KIND", "mine") + entry(65535, "", "", "KIND", "all"))
    #expect(XAuthority.cookies(in: entry(256, "here", "8", "K", "x"), for: display, host: "here") == nil)
    #expect(XAuthority.cookies(in: [], for: display, host: "here") == nil)
    // What is cut off anywhere gives what comes before that.
    for count in file.indices {
      _ = XAuthority.cookies(in: Array(file[..<count]), for: display, host: "here")
    }
    var random = SeededRandom(seed: 1)
    for _ in 0..<20_000 {
      var damaged = file
      damaged[Int.random(in: file.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
      _ = XAuthority.cookies(in: damaged, for: display, host: "here")
    }
  }
}
