// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

/// People, and a mounted store in which one of them has an app, which shares containers with a group and in
/// iCloud.
///
/// In their shells `$app` is what the app is called, `$container`, `$data`, `$documents`, `$inbox`, `$group`
/// and `$cloud` are its places, `$home` its user's home, `$bundle` the app itself; `deliver FILE...` does
/// what its name says.
final class PlaceFixture {
  static let app = "org.example.editor"
  let cast: Cast
  /// Who gets as far as the app's places.
  let people: [Person]

  /// What `adding` puts into the bundle is signed with it.
  init(
    rootless: Bool = false, entitlements: [(key: String, value: String)] = [],
    adding: (_ bundle: String) throws -> Void = { _ in },
    before: (_ workshop: String) throws -> [String] = { _ in [] }
  ) throws {
    cast = try Cast(rootless: rootless, before: before)
    people = rootless ? [.owner] : [.owner, .root]
    let owner = try #require(cast.account(.owner)).account
    let mounted = cast.mounted
    try Self.run(mounted, ["user", "add", owner.name, "--store", mounted.store])
    let own = [
      (
        key: "com.apple.security.application-groups",
        value: "<array><string>group.org.example</string></array>"
      ),
      (
        key: "com.apple.developer.icloud-container-identifiers",
        value: "<array><string>iCloud.org.example</string></array>"
      ),
    ]
    try prepareToInstall()
    try install("Editor", entitlements: own + entitlements, adding: adding)
    func place(_ word: String) throws -> String {
      let words = ["path", Self.app, word, "--user", owner.name, "--store", mounted.store]
      return String(try Self.run(mounted, words).dropLast())
    }
    let data = try place("home")
    cast.words = [
      "app": Self.app, "data": data, "container": String(data.dropLast("/Data".count)),
      "documents": "\(data)/Documents", "inbox": "\(data)/Documents/Inbox",
      "group": try place("group:group.org.example"), "cloud": try place("icloud"),
      "bundle": try place("bundle"), "home": mounted.path("Users/\(owner.name)"),
      "work": cast.workshop.path,
    ]
    try perform("mkdir -m 777 $work/place; cd $work/place; echo text >letter.txt", as: .owner)
  }

  @discardableResult
  private static func run(_ mounted: MountedStore, _ words: [String]) throws -> String {
    let result = try mounted.run(words)
    guard result.status == 0 else { throw MountedStore.Failure(words: "\(words): \(result.errors)") }
    return result.output
  }

  private func prepareToInstall() throws {
    let root = try cast.mounted.temporary.makeDirectory("apps", mode: 0o777) + "/root.pem"
    for words in [
      ["identity", "new", "tester", "--team", "ABCDE12345"],
      ["identity", "export", "tester", "--certificate", root],
      ["trust", "add", root, "--store", cast.mounted.store],
    ] {
      try Self.run(cast.mounted, words)
    }
  }

  /// Makes an app, and installs it for the owner.
  func install(
    _ name: String, entitlements: [(key: String, value: String)] = [],
    adding: (_ bundle: String) throws -> Void = { _ in }
  ) throws {
    let owner = try #require(cast.account(.owner)).account
    let apps = cast.mounted.temporary.appending("apps")
    let text = entitlements.map { "<key>\($0.key)</key>\($0.value)" }.joined()
    let plist = try cast.mounted.temporary.write(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><dict>\(text)</dict></plist>",
      to: "entitlements")
    chmod(plist, 0o644)
    let bundle = "\(apps)/\(name).app"
    try Self.run(cast.mounted, ["new-app", name, apps])
    try adding(bundle)
    try Self.run(cast.mounted, ["sign", bundle, "--identity", "tester", "--entitlements", plist])
    try Self.run(cast.mounted, ["install", bundle, "--user", owner.name, "--store", cast.mounted.store])
  }

  /// A line of shell as somebody, which must succeed; what it prints.
  @discardableResult
  func perform(_ line: String, as person: Person) throws -> String {
    let result = try run(line, as: person)
    guard result.status == 0 else {
      throw MountedStore.Failure(words: "\(person): \(line): \(result.output)\(result.errors)")
    }
    return result.output
  }

  func run(_ line: String, as person: Person) throws -> ProgramResult {
    let deliver = "deliver() { insula deliver $app \"$@\" --user $owner --store $store >/dev/null; }"
    return try cast.run("\(deliver); \(line)", as: person, in: cast.workshop.path)
  }

  /// All that can be told of what is in a place, but when it was last read.
  func fingerprint(_ place: String, as person: Person) throws -> String {
    try perform(
      """
      cd "\(place)" && find . -printf '%P %y %m %n %s %U:%G %T@ %C@ %l\\n' | sort &&
        find . -type f -print0 | sort -z | xargs -0r sha256sum &&
        find . -print0 | sort -z | xargs -0 getfattr -h -d -m - -e hex
      """, as: person)
  }
}
