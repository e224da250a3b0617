// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CSessionBus
internal import CTagLib

/// Libraries that only some features call for, and that are loaded where they are there.
enum LibraryDiagnosis {
  static var all: [Diagnosis] { [songs, dialogs] }

  private static var songs: Diagnosis {
    judge("songs", "TagLib", ctaglib_load(), missing: "apps are told of no songs")
  }

  private static var dialogs: Diagnosis {
    judge("dialogs", "libsystemd", csessionbus_load(), missing: "'insula agent' asks at terminals only")
  }

  /// `failure` says why it can't be loaded, and what to do.
  private static func judge(
    _ name: String, _ library: String, _ failure: UnsafePointer<CChar>?, missing effect: String
  ) -> Diagnosis {
    guard let failure else { return Diagnosis(name: name, level: .ok, finding: "\(library) can be loaded") }
    return Diagnosis(
      name: name, level: .warn, finding: "\(library) can't be loaded, so \(effect)",
      advice: String(cString: failure))
  }
}
