// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Apps that are installed for everyone elsewhere than in /Applications, and what all apps share.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct AppPlacesTests {
  @Test(arguments: [("--utilities", "Applications/Utilities"), ("--network", "Network/Applications")])
  func appsOfOtherPlacesAreAppsLikeAll(option: String, place: String) throws {
    let fixture = try RunFixture()
    let (mounted, store) = (fixture.mounted, fixture.mounted.store)
    let apps = try mounted.temporary.makeDirectory("store/made", mode: 0o777)
    func make(_ version: String) throws {
      _ = try Program.run(["rm", "-rf", "\(apps)/Tool.app", "\(apps)/Tool.entitlements"])
      try fixture.succeed("new-app", "Tool", apps, "--identifier", "org.example.tool")
      let place = "store/made/Tool.app/Contents/Info.plist"
      let text = try #require(mounted.temporary.text(of: place))
      try mounted.temporary.write(
        text.replacingFirst("<string>1.0</string>", by: "<string>\(version)</string>"), to: place)
      try fixture.succeed("sign", "\(apps)/Tool.app", "--identity", "tester")
    }
    try make("1.0")
    let path = mounted.path("\(place)/Tool.app")
    try fixture.succeed("install", "\(apps)/Tool.app", option, "--store", store)
    #expect(try Program.run(["test", "-d", path]).status == 0)
    let seen = try fixture.shell(
      """
      insula apps | grep -c org.example.tool
      insula path org.example.tool bundle
      bundle="$POINT/\(place)/Tool.app"
      insula run org.example.tool -- sh -c 'echo here; exec test -r "$1"' - "$bundle" && echo ran
      rm -r "$bundle" 2>/dev/null || echo kept
      insula uninstall org.example.tool 2>/dev/null || echo refused
      """)
    #expect(seen.output == "1\n\(path)\nhere\nran\nkept\nrefused\n", "\(seen.output)\(seen.errors)")
    let verified = try mounted.run(["verify", path, "--store", store])
    #expect(verified.status == 0, "\(verified.output)\(verified.errors)")

    // An update finds it where it is, and so does what removes it, whether or not one says for whom.
    try make("2.0")
    try fixture.succeed("update", "\(apps)/Tool.app", "--store", store)
    let info = try mounted.run(["info", "org.example.tool", "--store", store, "--json"])
    #expect(info.output.includes("\(place)/Tool.app") && info.output.includes("2.0"), "\(info.output)")
    try fixture.succeed("uninstall", "org.example.tool", "--everyone", "--store", store)
    #expect(try Program.run(["test", "-e", path]).ending == .failed)
    #expect(try mounted.run(["check", store]).status == 0)
  }

  @Test func anAppIsInOnePlace() throws {
    let fixture = try RunFixture()
    let made = fixture.mounted.temporary.appending("store/Notes-made/Notes.app")
    for words in [["--utilities", "--network"], ["--utilities", "--user", fixture.user.name]] {
      let result = try fixture.mounted.run(["install", made] + words + ["--store", fixture.mounted.store])
      #expect(result.errors.includes("an app is in one place"), "\(words): \(result.errors)")
    }
    // It is there already, in another one.
    let again = try fixture.mounted.run(["install", made, "--utilities", "--store", fixture.mounted.store])
    #expect(again.errors.includes("Applications/Notes.app"), "\(again.errors)")
    // Users may not.
    let users = try fixture.shell("insula install '\(made)' --network")
    #expect(users.ending == .notPermitted, "\(users)")
  }

  /// What all share belongs to somebody, and is nobody's home.
  @Test(arguments: [false, true]) func whoHasNoHomeIsTold(rootless: Bool) throws {
    let user = Account(name: "nobody", uid: 65534, gid: 65534, home: "/")
    let mounted = try MountedStore(owner: rootless ? user : nil)
    try mounted.mount()
    for words in [["path", "caches"], ["defaults", "write", "org.example", "a", "b"]] {
      let result = try mounted.run(words + ["--store", mounted.store])
      #expect(result.ending == .failed && result.errors.includes("insula user add"), "\(words): \(result)")
    }
    #expect(try Program.run(["ls", mounted.path("Users/Shared")]).output.isEmpty)
  }

  /// Signatures allow links there, which would lead nowhere otherwise.
  @Test func appsReadAndRunWhatIsInFrameworks() throws {
    let fixture = try RunFixture()
    let made = try fixture.shell(
      """
      cd "$POINT/Library/Frameworks"; mkdir -p Tool.framework; umask 022
      printf '#!/bin/sh\\necho run\\n' >Tool.framework/tool; chmod 755 Tool.framework/tool
      echo private >"$POINT/Library/Preferences/private"
      """, as: RunFixture.root)
    try #require(made.status == 0, "\(made.errors)")
    let seen = try fixture.inside(
      """
      cd "$1"; ls Library; Library/Frameworks/Tool.framework/tool
      cat Library/Preferences/private 2>/dev/null || echo unseen
      touch Library/Frameworks/new 2>/dev/null || echo kept
      echo x >Library/Frameworks/Tool.framework/tool 2>/dev/null || echo kept
      """.replacingFirst("$1", by: fixture.mounted.point))
    #expect(seen.output == "Frameworks\nrun\nunseen\nkept\nkept\n", "\(seen.output)\(seen.errors)")
  }
}

extension String {
  fileprivate func replacingFirst(_ text: String, by other: String) -> String {
    let parts = components(separatedBy: text)
    return parts.count < 2 ? self : parts[0] + other + parts.dropFirst().joined(separator: text)
  }
}
