// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
package import Policy
package import PropertyLists

/// What a bundle says of itself in its Info.plist.
package struct BundleInfo: Sendable {
  /// CFBundleIdentifier.
  package let identifier: String
  /// CFBundleName; empty if it is not there.
  package let name: String
  /// CFBundleExecutable; nil for a bundle that has only resources.
  package let executable: String?
  /// CFBundleVersion: the build; empty if it is not there.
  package let buildVersion: String
  /// CFBundleShortVersionString: the release; empty if it is not there.
  package let shortVersion: String
  /// The keys that end in UsageDescription: what the app wants with the user's things, in its words.
  package let usageDescriptions: [(key: String, text: String)]
  /// InsulaLimits: what the app may use of the machine.
  package let limits: ResourceLimits
  /// All of it.
  package let list: PropertyList.Dictionary

  /// The version that a signature names.
  package var version: String { buildVersion.isEmpty ? shortVersion : buildVersion }

  /// The largest Info.plist, in bytes and in values: it is read before anybody knows who has signed it.
  package static let sizeLimit = 1 << 20
  package static let valueLimit = 50_000

  package init(reading bytes: [UInt8]) throws(Finding) {
    let list: PropertyList
    do throws(PropertyListError) {
      list = try PropertyList(reading: bytes, atMost: Self.valueLimit)
    } catch {
      throw Finding(.badInfoPlist, detail: error.description)
    }
    guard let dictionary = list.dictionary else {
      throw Finding(.badInfoPlist, detail: "it is not a dictionary")
    }
    try self.init(dictionary)
  }

  package init(_ list: PropertyList.Dictionary) throws(Finding) {
    self.list = list
    func text(_ key: String) throws(Finding) -> String {
      guard let value = list[key] else { return "" }
      guard let text = value.string else { throw Finding(.badInfoPlist, detail: "\(key) is not a string") }
      return text
    }
    // Everybody's lists have these.
    func shortText(_ key: String) throws(Finding) -> String {
      let text = try text(key)
      guard text.utf8.count <= 1000 else {
        throw Finding(.badInfoPlist, detail: "\(key) has \(text.utf8.count) bytes; it may have 1000")
      }
      return text
    }
    identifier = try text("CFBundleIdentifier")
    try Self.checkIdentifier(identifier)
    name = try shortText("CFBundleName")
    buildVersion = try shortText("CFBundleVersion")
    shortVersion = try shortText("CFBundleShortVersionString")
    if list["CFBundleExecutable"] != nil {
      let name = try text("CFBundleExecutable")
      try Self.checkExecutable(name)
      executable = name
    } else {
      executable = nil
    }
    usageDescriptions = list.entries.compactMap { entry in
      guard entry.key.hasSuffix("UsageDescription"), let text = entry.value.string else { return nil }
      return (entry.key, text)
    }
    limits = try Self.limits(in: list)
  }

  /// Letters, digits, `-` and `.`, with something between the dots; it becomes the name of directories.
  package static func checkIdentifier(_ identifier: String) throws(Finding) {
    func refuse(_ reason: String) -> Finding { Finding(.badIdentifier, detail: reason) }
    guard !identifier.isEmpty else { throw refuse("there is none") }
    // Something may be put before and behind it, and a name has 255 bytes at most.
    guard identifier.utf8.count <= 200 else { throw refuse("it is longer than 200 characters") }
    for byte in identifier.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e: break
      default: throw refuse("it may contain only letters, digits, '-' and '.'")
      }
    }
    guard !identifier.parts(between: ".", keepingEmpty: true).contains("") else {
      throw refuse("a part between dots is empty")
    }
  }

  /// A plain name, so that it can't lead out of the bundle.
  private static func checkExecutable(_ name: String) throws(Finding) {
    func refuse(_ reason: String) -> Finding { Finding(.badExecutable, detail: reason) }
    guard !name.isEmpty else { throw refuse("its name is empty") }
    guard !name.utf8.contains(0x2f) else { throw refuse("'\(name)' is a path, not a name") }
    guard name != ".", name != "..", !name.utf8.contains(0), name.utf8.count <= 255 else {
      throw refuse("its name can't be a file name")
    }
  }
}
