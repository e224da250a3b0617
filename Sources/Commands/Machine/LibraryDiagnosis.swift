// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CSessionBus
internal import CTagLib

/// Libraries and a program that only some features call for, and that are used where they are there.
enum LibraryDiagnosis {
  static func all(_ context: Context) -> [Diagnosis] { [songs, dialogs, backups(context)] }

  private static var songs: Diagnosis {
    judge("songs", "TagLib", ctaglib_load(), missing: "apps are told of no songs")
  }

  private static var dialogs: Diagnosis {
    judge("dialogs", "libsystemd", csessionbus_load(), missing: "'insula agent' asks at terminals only")
  }

  private static func backups(_ context: Context) -> Diagnosis {
    guard Requirements.find("restic", context) == nil else {
      return Diagnosis(name: "backups", level: .ok, finding: "restic can be run")
    }
    return Diagnosis(
      name: "backups", level: .warn, finding: "restic is missing, so 'insula backup now' can't be used",
      advice: "install it ('apt-get install restic')")
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
