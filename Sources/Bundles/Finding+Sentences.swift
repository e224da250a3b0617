// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension Finding.Kind {
  /// The number that Apple's tools give it.
  package var appleCode: Int32 {
    switch self {
    case .added, .changed, .typeChanged, .symlinkChanged, .missing, .unreadable: -67054
    case .malformedCodeResources, .badName, .ambiguousNames, .tooDeep: -67055
    case .noCodeResources: -67056
    case .badRules: -67053
    case .nestedUnsigned: -67062
    case .nestedRejected: -67021
    case .weakRules: -67013
    case .weakDigest: -67007
    case .badSymlink: -67003
    case .sideband: -66999
    case .specialFile: -67016
    case .unsealedRoot, .guestInSignature: -67014
    case .codeResourcesAltered: -67023
    case .infoPlistAltered: -67030
    case .entitlementsAltered, .executableAltered: -67061
    case .unsigned: -67062
    case .malformedCodeDirectory: -67049
    case .malformedSignature, .otherBundle: -67045
    case .signatureMismatch: -67061
    case .untrusted: -66996
    case .expired: -67818
    case .notYetValid: -67819
    case .wrongPurpose: -67609
    case .teamMismatch: -66997
    case .badEntitlements: -66994
    case .notABundle, .badInfoPlist, .badIdentifier: -67028
    case .ambiguousShape: -67011
    case .badExecutable: -67010
    case .noExecutable: -67029
    }
  }

  /// What is said of the place where it was found.
  package var sentence: String {
    switch self {
    case .added: "is not in the seal: it was added after signing"
    case .changed: "differs from what was sealed"
    case .typeChanged: "has a different type from the one that was sealed"
    case .symlinkChanged: "is a symbolic link with a different target from the one that was sealed"
    case .missing: "is in the seal, but missing"
    case .noCodeResources: "the resource seal (_CodeSignature/CodeResources) is missing"
    case .malformedCodeResources: "the resource seal can't be read"
    case .badRules: "a rule of the resource seal is invalid"
    case .nestedUnsigned: "nested code is not signed"
    case .nestedRejected: "nested code differs from what was sealed"
    case .weakRules: "the rules of the resource seal exclude too many files"
    case .weakDigest: "is sealed with SHA-1 only"
    case .badSymlink: "is a symbolic link to something that is not sealed"
    case .sideband: "has a resource fork or Finder information, which can't be sealed"
    case .specialFile: "is not a file, a directory or a symbolic link"
    case .unsealedRoot: "does not belong beside Contents"
    case .guestInSignature: "does not belong in the signature"
    case .badName: "has a name that can't be sealed"
    case .ambiguousNames: "has a name that differs from another one only in case or spelling"
    case .tooDeep: "is nested too deeply"
    case .codeResourcesAltered: "the resource seal was changed after signing"
    case .infoPlistAltered: "Info.plist was changed after signing"
    case .entitlementsAltered: "the entitlements were changed after signing"
    case .executableAltered: "the executable was changed after signing"
    case .unsigned: "the bundle is not signed"
    case .malformedCodeDirectory: "the code directory can't be read"
    case .malformedSignature: "the signature can't be read"
    case .signatureMismatch: "the signature does not match the code directory"
    case .untrusted: "the signer is not trusted"
    case .expired: "a certificate of the signer has expired"
    case .notYetValid: "a certificate of the signer is not valid yet"
    case .wrongPurpose: "a certificate of the signer is not for code signing"
    case .teamMismatch: "the signer is not in the team that the code directory names"
    case .otherBundle: "the signature belongs to another bundle"
    case .badEntitlements: "the entitlements can't be read"
    case .notABundle: "is not a bundle"
    case .ambiguousShape: "is ambiguous: it is a bundle with Contents and a flat one"
    case .badInfoPlist: "Info.plist is invalid"
    case .badIdentifier: "the bundle's identifier is invalid"
    case .badExecutable: "the bundle's executable is invalid"
    case .noExecutable: "does not name an executable"
    case .unreadable: "can't be read"
    }
  }
}
