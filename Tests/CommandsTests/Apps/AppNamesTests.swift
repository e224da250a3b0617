// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import TestSupport
internal import Testing

/// Names and versions of apps are a stranger's.
@Suite struct AppNamesTests {
  @Test func nameOfAnAppForgesNoLines() throws {
    let app = try SignedApp(isSigned: false)
    let shell = app.shell
    try app.write(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <plist version="1.0"><dict><key>CFBundleIdentifier</key><string>org.example.note</string>
      <key>CFBundleExecutable</key><string>Note</string><key>CFBundlePackageType</key><string>APPL</string>
      <key>CFBundleName</key><string>A\u{9b}31m\u{202e}B
      forged</string><key>CFBundleShortVersionString</key><string>1
      forged\t2</string><key>CFBundleVersion</key><string>3
      forged</string></dict></plist>
      """, to: "Contents/Info.plist")
    for words in [
      ["sign", "Note.app"], ["init", "store"], ["trust", "add", "root.pem", "--store", "store"],
      ["install", "Note.app", "--store", "store"], ["apps", "--store", "store"],
      ["info", "org.example.note", "--store", "store"],
      ["update", "Note.app", "--allow-downgrade", "--store", "store"],
      ["uninstall", "org.example.note", "--store", "store"],
    ] {
      let result = shell.run(words)
      #expect(result.code == .ok, "\(words): \(result.errors)")
      #expect(!result.output.split(separator: "\n").contains { $0.hasPrefix("forged") }, "\(result.output)")
      #expect(!result.output.unicodeScalars.contains { [0x9b, 0x202e, 0x09].contains($0.value) })
    }
  }
}
