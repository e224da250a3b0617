// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO

/// What may be wrong with a bundle, as exit codes tell it.
///
/// The numbers stay what they are, since scripts rely on them; a new kind of finding takes a free one.
package struct BundleProblem: Hashable, Sendable {
  let kind: Bundles.Finding.Kind

  init(_ kind: Bundles.Finding.Kind) { self.kind = kind }

  /// All of them, by number.
  static let all = Bundles.Finding.Kind.allCases.map(BundleProblem.init).inOrder { $0.number < $1.number }

  /// The sentence that findings of this kind are told in.
  var meaning: String {
    let isAboutFile = ["is", "has", "differs", "does", "lies", "names", "can't"].contains {
      kind.sentence.hasPrefix($0 + " ")
    }
    return isAboutFile ? "FILE \(kind.sentence)" : kind.sentence
  }

  package var number: Int32 {
    switch kind {
    // The signature, and the parts that it speaks of.
    case .unsigned: 20
    case .malformedCodeDirectory: 21
    case .malformedSignature: 22
    case .signatureMismatch: 23
    case .untrusted: 24
    case .expired: 25
    case .notYetValid: 26
    case .wrongPurpose: 27
    case .teamMismatch: 28
    case .otherBundle: 29
    case .infoPlistAltered: 30
    case .executableAltered: 31
    case .codeResourcesAltered: 32
    case .entitlementsAltered: 33
    case .badEntitlements: 34
    // The files and their seal.
    case .noCodeResources: 40
    case .malformedCodeResources: 41
    case .badRules: 42
    case .weakRules: 43
    case .weakDigest: 44
    case .added: 45
    case .changed: 46
    case .missing: 47
    case .typeChanged: 48
    case .symlinkChanged: 49
    case .badSymlink: 50
    case .specialFile: 51
    case .sideband: 52
    case .badName: 53
    case .ambiguousNames: 54
    case .tooDeep: 55
    case .unsealedRoot: 56
    case .guestInSignature: 57
    case .nestedUnsigned: 58
    case .nestedRejected: 59
    // The bundle as such.
    case .notABundle: 60
    case .ambiguousShape: 61
    case .badInfoPlist: 62
    case .badIdentifier: 63
    case .badExecutable: 64
    case .noExecutable: 65
    case .unreadable: 66
    }
  }

  /// The table of all numbers, for `insula help verify`.
  static func helpTable() -> String {
    "Exit codes, by the first finding, with the number that Apple's tools use in brackets:\n"
      + all.map { "  \($0.number)  \($0.meaning) [\($0.kind.appleCode)]" }.joined(separator: "\n")
  }

  /// The same, for SIGNING.md.
  static func markdownTable() -> String {
    "| exit code | finding | Apple's number | message |\n|---|---|---|---|\n"
      + all.map { "| \($0.number) | `\($0.kind.rawValue)` | \($0.kind.appleCode) | \($0.meaning) |\n" }
      .joined()
  }
}
