// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import PropertyLists

extension CodeBundle {
  /// All that is not as the seal says, ordered by path; nothing if the bundle is as it was sealed.
  ///
  /// `nested` judges a bundle that is in this one by what its seal says of it; its findings are taken over as
  /// what is wrong in that place. Whether the seal itself is the one that was signed is not asked here.
  package func findings(
    against seal: ResourceSeal, nested: (CodeBundle, NestedSeal) -> [Finding]
  ) -> [Finding] {
    do throws(Finding) {
      let found = try SealWalk(self, seal.rules, .verifying(seal)).run()
      // What the walk did not come to is not missing.
      if let end = bounds?.end { return refusal(found, seal, end) }
      var findings = found.findings + compare(found, seal, nested)
      let optional = seal.entries.lazy.filter(\.isOptional).map { ExactText($0.path) }
      findings += LinkCheck(found.items, self).findings(optional: Set(optional))
      findings += guestsInSignature()
      if !seal.isSecondVersion {
        findings.append(Finding(.weakDigest, SealLayout.codeResourcesPath))
      } else if seal.rules.areWeak {
        findings.append(Finding(.weakRules, SealLayout.codeResourcesPath))
      }
      findings = findings.map { fromRoot($0) } + unexpectedInRoot()
      // It may have ended in a bundle in this one.
      if findings.isEmpty, let end = bounds?.end { return [end] }
      return findings.sortedByPath()
    } catch {
      return [fromRoot(error)]
    }
  }

  /// What is wrong as far as a walk has come that was ended; it is never nothing.
  private func refusal(
    _ found: (items: [SealItem], findings: [Finding]), _ seal: ResourceSeal, _ end: Finding
  ) -> [Finding] {
    let added = found.items.filter { seal.entry(for: $0.path) == nil }.compactMap { self.added($0) }
    let findings = (found.findings + added).map { fromRoot($0) }
    return findings.isEmpty ? [end] : findings.sortedByPath()
  }

  /// Goes along both lists, which have the same order.
  private func compare(
    _ found: (items: [SealItem], findings: [Finding]), _ seal: ResourceSeal,
    _ nested: (CodeBundle, NestedSeal) -> [Finding]
  ) -> [Finding] {
    var findings: [Finding] = []
    // What was found and could not be looked at is not missing too.
    let accounted = Set(found.findings.map { Array($0.path.utf8) })
    var index = 0
    for entry in seal.entries {
      while index < found.items.count, found.items[index].path.precedes(entry.path) {
        if let finding = added(found.items[index]) { findings.append(finding) }
        index += 1
      }
      if index < found.items.count, found.items[index].path.hasSameBytes(as: entry.path) {
        findings += compare(found.items[index], entry, nested)
        index += 1
      } else if !entry.isOptional, !accounted.contains(Array(entry.path.utf8)) {
        findings.append(Finding(.missing, entry.path))
      }
    }
    findings += found.items[index...].compactMap { added($0) }
    return findings
  }

  private func added(_ item: SealItem) -> Finding? {
    // Directories are made for what is in them.
    item.kind == .directory ? nil : Finding(.added, item.path)
  }

  private func compare(
    _ item: SealItem, _ entry: ResourceSeal.Entry, _ nested: (CodeBundle, NestedSeal) -> [Finding]
  ) -> [Finding] {
    switch (item.kind, entry.content) {
    case (.file(let digest, _), .file(let algorithm, let sealed)):
      if digest != sealed { return [Finding(.changed, item.path)] }
      return algorithm == .sha1 ? [Finding(.weakDigest, item.path)] : []
    case (.symlink(let target), .symlink(let sealed)):
      return target.hasSameBytes(as: sealed)
        ? [] : [Finding(.symlinkChanged, item.path, detail: "'\(target)' instead of '\(sealed)'")]
    case (.nested, .nested(let sealed)):
      if bounds?.end != nil { return [] }
      do throws(Finding) {
        return nested(try nestedBundle(at: item.path), sealed).map { $0.inside(item.path) }
      } catch {
        return [error.inside(item.path)]
      }
    case (_, .nested) where item.kind != .directory:
      return [Finding(.typeChanged, item.path, detail: "it was sealed as nested code")]
    default: return [Finding(.typeChanged, item.path)]
    }
  }
}
