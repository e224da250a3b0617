// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
internal import Policy
internal import Store

// What apps say of types and documents: checked before they are installed, and noted after.

extension Installer {
  /// Refuses types that would conform to themselves through those that other apps export.
  ///
  /// What others only import gives way to whoever exports it, so it stands in nobody's way.
  func checkTypes(
    _ contents: AppContents, named name: String, for user: UInt32?, _ report: InstallReport
  ) throws(AppFailure) {
    let own = contents.declarations.exported + contents.declarations.imported
    guard !own.isEmpty else { return }
    try report.checkCancelled()
    let documents = try registered { () throws(StoreError) in
      try registry.documents(of: nil) + (user == nil ? [] : registry.documents(of: user))
    }
    let known = documents.filter { $0.identifier.lowercased() != contents.identifier.text.lowercased() }
      .flatMap { AppDeclarations(text: $0.declarations).exported }
    let circle = TypeCircle.find(in: own, among: known)
    try report.checkCancelled()
    guard let circle else { return }
    throw .refused(
      bundle: name,
      [
        Bundles.Finding(
          .badInfoPlist,
          detail: BundleInfo.words(ofCircle: circle) + "; other apps that are installed have part of it")
      ])
  }

  /// Notes what apps say of whom that is not known: who have just been installed, and whom an earlier version
  /// has installed.
  ///
  /// What can't be read now is tried again with the next change. An earlier version has refused nothing: what
  /// would be refused now says nothing.
  func noteDeclarations(_ scope: RecoveryScope) {
    guard let paths = try? registry.undeclaredApps(), !paths.isEmpty, let apps = try? registry.apps(),
      let outside = try? registry.namesOfHomesElsewhere()
    else { return }
    for app in apps where paths.contains(app.path) && scope.reaches(app.path.utf8, outside: outside) {
      guard let root = try? store.tree.openDirectory(at: app.path),
        let bundle = try? CodeBundle(in: root, name: app.bundleName), (try? bundle.sealDigest()) == app.seal
      else { continue }
      try? registry.note((try? bundle.info.declarations()) ?? AppDeclarations(), of: app)
    }
  }
}
