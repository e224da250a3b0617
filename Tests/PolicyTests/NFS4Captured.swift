// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// What nfs4_setfacl 0.3.7 sent for an ACL; Tests/Fixtures/nfs4-acl-tools/capture.sh printed it.
struct CapturedACL: CustomTestStringConvertible {
  /// `f` or `d` for a file or a directory, and what was typed.
  let typed: String
  let hex: String
  /// What it means, or why it is refused.
  let meaning: Result<AccessControlList, MalformedACL>

  init(_ typed: String, _ hex: String, _ entries: AccessControlEntry...) {
    self.typed = typed
    self.hex = hex
    meaning = .success(AccessControlList(entries))
  }

  init(_ typed: String, _ hex: String, refused: MalformedACL) {
    self.typed = typed
    self.hex = hex
    meaning = .failure(refused)
  }

  var testDescription: String { typed }
}

let capturedLists: [CapturedACL] = [
  CapturedACL(
    "d A::OWNER@:r", "00000001000000000000000000000001000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .read)),
  CapturedACL(
    "d A::OWNER@:w", "00000001000000000000000000000002000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .write)),
  CapturedACL(
    "d A::OWNER@:a", "00000001000000000000000000000004000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .append)),
  CapturedACL(
    "d A::OWNER@:D", "00000001000000000000000000000040000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .deleteChild)),
  CapturedACL(
    "d A::OWNER@:x", "00000001000000000000000000000020000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .execute)),
  CapturedACL(
    "d A::OWNER@:d", "00000001000000000000000000010000000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .delete)),
  CapturedACL(
    "d A::OWNER@:t", "00000001000000000000000000000080000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .readAttributes)),
  CapturedACL(
    "d A::OWNER@:T", "00000001000000000000000000000100000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .writeAttributes)),
  CapturedACL(
    "d A::OWNER@:n", "00000001000000000000000000000008000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .readExtended)),
  CapturedACL(
    "d A::OWNER@:N", "00000001000000000000000000000010000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .writeExtended)),
  CapturedACL(
    "d A::OWNER@:c", "00000001000000000000000000020000000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .readSecurity)),
  CapturedACL(
    "d A::OWNER@:C", "00000001000000000000000000040000000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .writeSecurity)),
  CapturedACL(
    "d A::OWNER@:o", "00000001000000000000000000080000000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .takeOwnership)),
  CapturedACL(
    "d A::OWNER@:y", "00000001000000000000000000100000000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .synchronize)),
  CapturedACL(
    "d A:f:OWNER@:r", "00000001000000000000000100000001000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .read, .fileInherit)),
  CapturedACL(
    "d A:d:OWNER@:r", "00000001000000000000000200000001000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .read, .directoryInherit)),
  CapturedACL(
    "d A:n:OWNER@:r", "00000001000000000000000400000001000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .read, .limitInherit)),
  CapturedACL(
    "d A:i:OWNER@:r", "00000001000000000000000800000001000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .read, .onlyInherit)),
  CapturedACL(
    "f D::EVERYONE@:w", "000000010000000100000000000000020000000945564552594f4e4540000000",
    AccessControlEntry(.deny, .everyone, .write)),
  CapturedACL(
    "f A:g:GROUP@:r", "000000010000000000000040000000010000000647524f5550400000",
    AccessControlEntry(.permit, .owningGroup, .read)),
  CapturedACL(
    "f A::GROUP@:r", "000000010000000000000040000000010000000647524f5550400000",
    AccessControlEntry(.permit, .owningGroup, .read)),
  CapturedACL(
    "f A:g:OWNER@:r", "00000001000000000000004000000001000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, .read)),
  CapturedACL(
    "f U::OWNER@:r", "00000001000000020000000000000001000000064f574e4552400000",
    AccessControlEntry(.audit, .owner, .read)),
  CapturedACL(
    "f L::OWNER@:r", "00000001000000030000000000000001000000064f574e4552400000",
    AccessControlEntry(.alarm, .owner, .read)),
  CapturedACL(
    "f U:SF:OWNER@:r", "00000001000000020000003000000001000000064f574e4552400000",
    refused: .inexpressible("entry 0 is an audit or alarm entry")),
  CapturedACL(
    "f L:S:EVERYONE@:r", "000000010000000300000010000000010000000945564552594f4e4540000000",
    refused: .inexpressible("entry 0 is an audit or alarm entry")),
  CapturedACL(
    "f A::alice:r", "0000000100000000000000000000000100000005616c696365000000",
    AccessControlEntry(.permit, .user(501), .read)),
  CapturedACL(
    "f A:g:users:r", "00000001000000000000004000000001000000057573657273000000",
    AccessControlEntry(.permit, .group(100), .read)),
  CapturedACL(
    "f A::1000:r", "000000010000000000000000000000010000000431303030",
    AccessControlEntry(.permit, .user(1000), .read)),
  CapturedACL(
    "f A:g:1000:r", "000000010000000000000040000000010000000431303030",
    AccessControlEntry(.permit, .group(1000), .read)),
  CapturedACL(
    "f A::alice@localdomain:r",
    "0000000100000000000000000000000100000011616c696365406c6f63616c646f6d61696e000000",
    AccessControlEntry(.permit, .user(501), .read)),
  CapturedACL(
    "f A::alice@elsewhere.example:r",
    "0000000100000000000000000000000100000017616c69636540656c736577686572652e6578616d706c6500",
    refused: .malformed("entry 0 is for an account that this machine does not have")),
  CapturedACL(
    "f A::OWNER@:", "00000001000000000000000000000000000000064f574e4552400000",
    AccessControlEntry(.permit, .owner, [])),
  CapturedACL(
    "f A::OWNER@:RWX", "000000010000000000000000001601bf000000064f574e4552400000",
    AccessControlEntry(
      .permit, .owner,
      [
        .read, .readExtended, .readAttributes, .readSecurity, .synchronize, .write, .append, .writeAttributes,
        .writeExtended, .writeSecurity, .execute,
      ])),
  CapturedACL(
    "d A::OWNER@:RWX", "000000010000000000000000001601ff000000064f574e4552400000",
    AccessControlEntry(
      .permit, .owner,
      [
        .read, .readExtended, .readAttributes, .readSecurity, .synchronize, .write, .append, .writeAttributes,
        .writeExtended, .writeSecurity, .deleteChild, .execute,
      ])),
  CapturedACL(
    "f A:fdni:alice:rwaD", "0000000100000000000000000000000700000005616c696365000000",
    AccessControlEntry(.permit, .user(501), [.read, .write, .append])),
  CapturedACL(
    "f D::EVERYONE@:w,A::alice:rxtncy,A:g:GROUP@:rtncy",
    "000000030000000100000000000000020000000945564552594f4e4540000000000000"
      + "0000000000001200a900000005616c6963650000000000000000000040001200890000000647524f5550400000",
    AccessControlEntry(.deny, .everyone, .write),
    AccessControlEntry(
      .permit, .user(501), [.read, .execute, .readAttributes, .readExtended, .readSecurity, .synchronize]),
    AccessControlEntry(
      .permit, .owningGroup, [.read, .readAttributes, .readExtended, .readSecurity, .synchronize])),
]
