// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
package import Policy
package import PropertyLists

/// What its signature says that an app may do beyond its own containers.
///
/// Entitlements that are not known here give nothing.
package struct AppEntitlements: Equatable, Sendable {
  /// A standard directory of the home.
  package struct Directory: Equatable, Sendable {
    package let name: String
    package let isWritable: Bool
  }

  /// A place that was named in the entitlements.
  package struct Exception: Equatable, Sendable {
    /// Names below the home, or below the root of the tree.
    package let path: [String]
    package let isInHome: Bool
    package let isWritable: Bool
    /// With all that is in it.
    package let isSubtree: Bool
  }

  /// Whether it gets the network at all: the kernel can't tell calling from being called here.
  package var hasNetwork = false
  /// What it writes, it may run.
  package var runsWhatItWrites = false
  /// Of its user's desktop.
  package var desktop = DesktopEntitlements()
  package var directories: [Directory] = []
  package var exceptions: [Exception] = []

  private static let prefix = "com.apple.security."

  package init() {}

  package init(_ signed: PropertyList.Dictionary) throws(AppFailure) {
    func has(_ key: String) throws(AppFailure) -> Bool {
      try signed.grants(Self.prefix + key)
    }
    let calls = try has("network.client")
    let isCalled = try has("network.server")
    hasNetwork = calls || isCalled
    runsWhatItWrites = try has("cs.disable-library-validation")
    desktop = try DesktopEntitlements(signed)
    for (key, name) in [
      ("files.downloads", "Downloads"), ("assets.music", "Music"), ("assets.movies", "Movies"),
      ("assets.pictures", "Pictures"),
    ] {
      let isReadable = try has(key + ".read-only")
      let isWritable = try has(key + ".read-write")
      if isReadable || isWritable { directories.append(Directory(name: name, isWritable: isWritable)) }
    }
    for (word, isInHome) in [("home-relative-path", true), ("absolute-path", false)] {
      for (access, isWritable) in [("read-only", false), ("read-write", true)] {
        let key = "\(Self.prefix)temporary-exception.files.\(word).\(access)"
        for path in try signed.strings(key) ?? [] {
          exceptions.append(try Self.exception(path, key, isInHome: isInHome, isWritable: isWritable))
        }
      }
    }
  }

  /// What they open of the tree, by what they say; an app gets no more of it than its user has consented to.
  package func places(home: String) -> [ScopePlace] {
    let directories = directories.map {
      ScopePlace("Users/\(home)/\($0.name)", $0.isWritable ? [.read, .write] : .read)
    }
    return directories
      + exceptions.map { exception in
        let names = (exception.isInHome ? ["Users", home] : []) + exception.path
        return ScopePlace(
          names.map { Array($0.utf8) }, exception.isWritable ? [.read, .write] : .read,
          isSubtree: exception.isSubtree)
      }
  }

  private static func exception(
    _ path: String, _ key: String, isInHome: Bool, isWritable: Bool
  ) throws(AppFailure) -> Exception {
    guard path.begins(with: "/"), !path.utf8.contains(0) else {
      throw .badEntitlement(key: key, reason: "'\(path)' does not begin with a slash")
    }
    let names = path.parts(between: "/").map(String.init)
    guard !names.contains("."), !names.contains(".."), names.allSatisfy({ $0.utf8.count <= 255 }) else {
      throw .badEntitlement(key: key, reason: "'\(path)' contains '.', '..' or a name that is too long")
    }
    return Exception(
      path: names, isInHome: isInHome, isWritable: isWritable, isSubtree: path.ends(with: "/"))
  }
}
