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
    case .added: "is not in the seal: added after signing"
    case .changed: "differs from what was sealed"
    case .typeChanged: "is of another type than what was sealed"
    case .symlinkChanged: "is a symbolic link to another target than was sealed"
    case .missing: "is sealed and missing"
    case .noCodeResources: "there is no seal of the resources (_CodeSignature/CodeResources)"
    case .malformedCodeResources: "the seal of the resources can't be read"
    case .badRules: "a rule of the seal can't be used"
    case .nestedUnsigned: "nested code is not signed"
    case .nestedRejected: "nested code is not the code that was sealed"
    case .weakRules: "the rules of the seal leave too much unsealed"
    case .weakDigest: "is sealed by SHA-1 only"
    case .badSymlink: "is a symbolic link to something that is not sealed"
    case .sideband: "has a resource fork or Finder information, which no seal covers"
    case .specialFile: "is neither a file, a directory nor a symbolic link"
    case .unsealedRoot: "does not belong beside Contents"
    case .guestInSignature: "does not belong into the signature"
    case .badName: "has a name that can't be sealed"
    case .ambiguousNames: "has the name of another file but for case or spelling"
    case .tooDeep: "lies too deep"
    case .codeResourcesAltered: "the seal of the resources was changed after signing"
    case .infoPlistAltered: "Info.plist was changed after signing"
    case .entitlementsAltered: "the entitlements were changed after signing"
    case .executableAltered: "the executable was changed after signing"
    case .unsigned: "the bundle is not signed"
    case .malformedCodeDirectory: "the code directory can't be read"
    case .malformedSignature: "the signature can't be read"
    case .signatureMismatch: "the signature is not one of this code directory"
    case .untrusted: "the signer is not trusted"
    case .expired: "a certificate of the signer has expired"
    case .notYetValid: "a certificate of the signer is not valid yet"
    case .wrongPurpose: "a certificate of the signer is not one for signing code"
    case .teamMismatch: "the signer is not of the team that the code directory names"
    case .otherBundle: "the signature is another bundle's"
    case .badEntitlements: "the entitlements can't be read"
    case .notABundle: "is not a bundle"
    case .ambiguousShape: "is a bundle in two ways: with Contents, and flat"
    case .badInfoPlist: "Info.plist can't be used"
    case .badIdentifier: "the bundle's identifier can't be used"
    case .badExecutable: "the bundle's executable can't be used"
    case .noExecutable: "names no executable"
    case .unreadable: "can't be read"
    }
  }
}
