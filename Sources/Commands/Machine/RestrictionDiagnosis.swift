// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Store

/// Whether the list with which administrators restrict apps can be read.
struct RestrictionDiagnosis {
  private let path: String
  private let context: Context

  init(_ path: String, _ context: Context) {
    self.path = path
    self.context = context
  }

  /// Nothing where there is no such list, it can be read, or it is another user's business.
  var all: [Diagnosis] {
    guard let store = try? Store(opening: path, .inspect),
      (try? store.directory.status())?.st_uid == context.uid,
      let problem = ManagedConsent(in: store, say: { _ in }).problem
    else { return [] }
    return [
      Diagnosis(
        name: "restrictions", level: .warn,
        finding: "/\(ManagedConsent.path) can't be read, so no app may use private data: \(problem)",
        advice: "correct the list, or remove it")
    ]
  }
}
