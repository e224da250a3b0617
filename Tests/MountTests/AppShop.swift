// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A mounted store that trusts an identity, and apps that are signed by it.
struct AppShop {
  let mounted: MountedStore

  init() throws {
    mounted = try MountedStore.mounted()
    try succeed("identity", "new", "tester", "--team", "ABCDE12345", store: false)
    try succeed(
      "identity", "export", "tester", "--certificate", mounted.temporary.appending("root.pem"), store: false)
    try succeed("trust", "add", mounted.temporary.appending("root.pem"))
  }

  /// Makes another identity, under the same root.
  func addIdentity(_ name: String, team: String) throws {
    try succeed("identity", "new", name, "--team", team, store: false)
  }

  /// Makes a signed app that everyone may read; its path.
  func make(
    _ name: String, version: String, in directory: String = "apps", groups: [String] = [],
    clouds: [String] = [], by identity: String = "tester"
  ) throws -> String {
    try mounted.temporary.makeDirectory(directory, mode: 0o755)
    let path = mounted.temporary.appending("\(directory)/\(name).app")
    try succeed("new-app", name, mounted.temporary.appending(directory), store: false)
    let plist = "\(directory)/\(name).app/Contents/Info.plist"
    let text = try #require(mounted.temporary.text(of: plist))
    let key = "<key>CFBundleVersion</key>"
    let parts = text.components(separatedBy: key)
    try #require(parts.count == 2)
    let rest = parts[1].drop { $0 != "\n" }.dropFirst().drop { $0 != "\n" }
    try mounted.temporary.write(parts[0] + key + "\n\t<string>\(version)</string>" + rest, to: plist)
    func array(_ texts: [String]) -> String {
      "<array>" + texts.map { "<string>\($0)</string>" }.joined() + "</array>"
    }
    let entitlements = try mounted.temporary.write(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <plist version="1.0"><dict>
      <key>com.apple.security.application-groups</key>\(array(groups))
      <key>com.apple.developer.icloud-container-identifiers</key>\(array(clouds))
      </dict></plist>
      """, to: "\(directory)/entitlements")
    let more = groups.isEmpty && clouds.isEmpty ? [] : ["--entitlements", entitlements]
    let signed = try mounted.run(["sign", path, "--identity", identity] + more)
    try #require(signed.status == 0, "\(signed.errors)")
    return path
  }

  /// Runs a command that must do what it is asked for.
  func succeed(_ words: String..., store: Bool = true) throws {
    let isAboutStore = store && words.first != "unmount"
    let all =
      words + (isAboutStore ? ["--store", mounted.store] : words.first == "unmount" ? [mounted.point] : [])
    let result = try mounted.run(all)
    try #require(result.status == 0, "insula \(all.joined(separator: " ")): \(result.errors)")
  }

  /// Runs a command as an ordinary user, against the mount.
  func run(as account: TemporaryAccount, groups: [UInt32] = [], _ words: String...) throws -> ProgramResult {
    try run(as: account, groups: groups, words)
  }

  func run(as account: TemporaryAccount, groups: [UInt32] = [], _ words: [String]) throws -> ProgramResult {
    let list =
      groups.isEmpty ? ["--clear-groups"] : ["--groups=\(groups.map(String.init).joined(separator: ","))"]
    let become = ["setpriv", "--reuid=\(account.account.uid)", "--regid=\(account.account.gid)"] + list
    return try mounted.run(words + ["--store", mounted.point], before: become)
  }

  /// Runs a command that must end within a minute, as root or an ordinary user.
  func runInTime(as account: TemporaryAccount?, _ words: [String]) throws -> ProgramResult {
    let become = account.map {
      ["setpriv", "--reuid=\($0.account.uid)", "--regid=\($0.account.gid)", "--clear-groups"]
    }
    let store = ["--store", account == nil ? mounted.store : mounted.point]
    var all = words
    all.insert(contentsOf: store, at: words.firstIndex(of: "--") ?? words.endIndex)
    return try mounted.run(all, before: (become ?? []) + ["timeout", "-s", "KILL", "60"])
  }

  func expectNothingToComplainAbout() throws {
    let result = try mounted.run("check", mounted.store)
    #expect(result.status == 0, "\(result.output)\(result.errors)")
  }
}
