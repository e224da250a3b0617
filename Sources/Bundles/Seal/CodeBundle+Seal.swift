// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import PropertyLists

extension CodeBundle {
  /// What a seal of this bundle as it is now says.
  ///
  /// `nested` signs a bundle that is in this one, or tells how it is signed; it comes after all of the
  /// bundle's own files were read, and once for each. Whatever a verification would find is found here, and
  /// nothing is sealed.
  package func seal(
    nested: (CodeBundle) throws(Finding) -> NestedSeal
  ) throws(SealRefusal) -> ResourceSeal {
    var findings: [Finding] = []
    do throws(Finding) {
      let rules = try SealRules.standard(shape)
      let firstVersion = try SealRules.firstVersion(shape)
      let found = try SealWalk(self, rules, .sealing(firstVersion: firstVersion)).run()
      findings = (found.findings + LinkCheck(found.items, self).findings()).map { fromRoot($0) }
      findings += unexpectedInRoot()
      if findings.isEmpty {
        var entries: [ResourceSeal.Entry] = []
        for item in found.items {
          guard let entry = try entry(item, nested) else { continue }
          entries.append(entry)
        }
        return ResourceSeal(
          entries: entries, rules: rules, isSecondVersion: true, firstVersionRules: firstVersion)
      }
    } catch {
      findings.append(error)
    }
    throw SealRefusal(findings: findings.sortedByPath())
  }

  private func entry(
    _ item: SealItem, _ nested: (CodeBundle) throws(Finding) -> NestedSeal
  ) throws(Finding) -> ResourceSeal.Entry? {
    switch item.kind {
    case .directory: return nil
    case .file(let digest, let firstVersion):
      return ResourceSeal.Entry(
        path: item.path, content: .file(.sha256, digest: digest), isOptional: item.isOptional,
        firstVersionDigest: firstVersion, isOptionalInFirstVersion: item.isOptional)
    case .symlink(let target):
      return ResourceSeal.Entry(
        path: item.path, content: .symlink(target: target), isOptional: item.isOptional)
    case .nested:
      do throws(Finding) {
        let seal = try nested(nestedBundle(at: item.path))
        return ResourceSeal.Entry(path: item.path, content: .nested(seal), isOptional: item.isOptional)
      } catch {
        throw fromRoot(error.inside(item.path))
      }
    }
  }

  /// The bundle at a path that a walk has found.
  package func nestedBundle(at path: String) throws(Finding) -> CodeBundle {
    var names = path.parts(between: "/").makeIterator()
    var directory = try Finding.instead(of: .unreadable, "") { () throws(Errno) in try base.duplicated() }
    var last = ""
    while let name = names.next() {
      last = String(name)
      let parent = directory.fd
      directory = try Finding.instead(of: .notABundle, "") { () throws(Errno) in
        try parent.openDirectoryToExamine(last)
      }
    }
    return try CodeBundle(
      in: directory, name: last, depth: depth + 1, progress: progress, known: known, bounds: bounds)
  }

  /// What lies beside `Contents` and does not belong there.
  func unexpectedInRoot() -> [Finding] {
    guard shape == .contents else { return [] }
    do throws(Errno) {
      return try root.names(besides: SealLayout.rootFiles, atMost: mostNames)
        .filter { !$0.hasSameBytes(as: "Contents") }.map { Finding(.unsealedRoot, $0) }
    } catch .EOVERFLOW {
      return [Finding(.unsealedRoot, "", detail: "more than \(mostNames) names")]
    } catch {
      return [Finding(.unreadable, "", error)]
    }
  }

  /// What lies in the directory of the signature and does not belong there.
  func guestsInSignature() -> [Finding] {
    let place = SealLayout.signatureDirectory
    do throws(Errno) {
      let directory = try base.openDirectoryToExamine(place)
      return try directory.fd.names(besides: SealLayout.parts, atMost: mostNames).map {
        Finding(.guestInSignature, "\(place)/\($0)")
      }
    } catch .EOVERFLOW {
      return [Finding(.guestInSignature, place, detail: "more than \(mostNames) names")]
    } catch {
      // Whether there is a signature is a question of its own.
      return error == .ENOENT ? [] : [Finding(.unreadable, place, error)]
    }
  }

  /// How many names that do not belong there are looked at.
  private var mostNames: Int { bounds == nil ? SealWalk.entryLimit : VerificationBounds.mostFindings }
}

extension FD {
  /// The names in a directory that are not those of regular files with one of the known names.
  ///
  /// EOVERFLOW where there are more than `limit`.
  fileprivate func names(besides known: [String], atMost limit: Int) throws(Errno) -> [String] {
    try entries(atMost: limit) { name, _ in
      let isKnown = known.contains { name.buffer.elementsEqual($0.utf8) }
      return !isKnown || (try? status(of: name).isRegular) != true
    }.map { String(decoding: $0.name, as: UTF8.self) }
  }
}
