// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Policy
internal import Store

/// The versions, for programs.
struct SystemDescription: Encodable {
  struct Version: Encodable {
    let root: String
    let version: String
    let team: String
    let installed: Int64

    init(_ version: SystemVersion) {
      root = version.root.asHexadecimal
      self.version = version.version
      team = version.team
      installed = version.installed
    }
  }

  let current: Version
  let previous: Version?

  init(_ versions: SystemVersions) {
    current = Version(versions.current)
    previous = versions.previous.map(Version.init)
  }
}

extension SystemDescription {
  /// Says which system there is after a change.
  static func tell(_ versions: SystemVersions, _ json: Bool, _ word: String, _ console: Console) -> ExitCode {
    if json {
      console.print(json: SystemDescription(versions))
    } else {
      console.say("The system domain is \(word) \(versions.current.words).")
    }
    return .ok
  }
}

extension SystemVersion {
  /// For people.
  var words: String {
    guard !root.isEmpty else { return "unsigned, as in a new store" }
    return (version.isEmpty ? "an unnamed version" : "version \(version)") + " of the team \(team)"
  }
}
