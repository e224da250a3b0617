// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Something about a bundle that is not as its seal or the rules of bundles say.
package struct Finding: Error, Equatable, Sendable {
  /// What is wrong.
  package let kind: Kind
  /// Where, relative to the bundle that was looked at, with `/` between the names; empty for the bundle
  /// itself.
  package let path: String
  /// What else there is to say; empty if the kind says it all.
  package let detail: String

  package init(_ kind: Kind, _ path: String = "", detail: String = "") {
    self.kind = kind
    self.path = path
    self.detail = detail
  }

  /// The same finding, seen from a bundle that has this one at `directory`.
  package func inside(_ directory: String) -> Finding {
    Finding(kind, path.isEmpty ? directory : "\(directory)/\(path)", detail: detail)
  }

  /// For people: the first bad file, what is wrong with it, and Apple's number.
  package var message: String {
    let place = path.isEmpty ? "" : "\(path): "
    let more = detail.isEmpty ? "" : " (\(detail))"
    return "\(place)\(kind.sentence)\(more) [\(kind.appleCode)]"
  }
}

extension Finding {
  /// What can be wrong.
  package enum Kind: String, CaseIterable, Sendable {
    // The resource seal.
    case added
    case changed
    case typeChanged
    case symlinkChanged
    case missing
    case noCodeResources
    case malformedCodeResources
    case badRules
    case nestedUnsigned
    case nestedRejected

    // What Apple's tools find only when asked to be strict; always looked for here.
    case weakRules
    case weakDigest
    case badSymlink
    case sideband
    case specialFile
    case unsealedRoot
    case guestInSignature
    case badName
    case ambiguousNames
    case tooDeep

    // The parts that the code directory seals.
    case codeResourcesAltered
    case infoPlistAltered
    case entitlementsAltered
    case executableAltered

    // The signature.
    case unsigned
    case malformedCodeDirectory
    case malformedSignature
    case signatureMismatch
    case untrusted
    case expired
    case notYetValid
    case wrongPurpose
    case teamMismatch
    case otherBundle
    case badEntitlements

    // The bundle as such.
    case notABundle
    case ambiguousShape
    case badInfoPlist
    case badIdentifier
    case badExecutable
    case noExecutable
    case unreadable
  }
}
