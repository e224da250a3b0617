// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// Which files some caller may be allowed to append to and not to write elsewhere in.
@Suite struct AppendAloneTests {
  private func file(_ entries: AccessControlEntry..., flags: FileFlags = []) -> Object {
    Object(
      uid: 1, gid: 1, mode: 0o644, kind: .file, zone: .user, flags: flags,
      acl: entries.isEmpty ? .none : .acl(AccessControlList(entries)))
  }

  @Test func flagsAndEntriesMakeTheDifference() {
    #expect(!mayGrantAppendAlone(file()))
    #expect(!mayGrantAppendAlone(file(flags: [.userImmutable, .hidden])))
    #expect(mayGrantAppendAlone(file(flags: .userAppend)) && mayGrantAppendAlone(file(flags: .systemAppend)))
    for kind in [AccessControlEntry.Kind.permit, .deny] {
      #expect(mayGrantAppendAlone(file(AccessControlEntry(kind, .user(5), .append))))
      #expect(mayGrantAppendAlone(file(AccessControlEntry(kind, .user(5), [.write, .read]))))
      #expect(!mayGrantAppendAlone(file(AccessControlEntry(kind, .user(5), [.write, .append]))))
      #expect(!mayGrantAppendAlone(file(AccessControlEntry(kind, .everyone, [.read, .delete]))))
      for both in [Rights.genericWrite, .genericAll] {
        #expect(!mayGrantAppendAlone(file(AccessControlEntry(kind, .everyone, both))))
      }
      #expect(!mayGrantAppendAlone(file(AccessControlEntry(kind, .user(5), .append, .onlyInherit))))
    }
    #expect(!mayGrantAppendAlone(file(AccessControlEntry(.audit, .user(5), .append))))
  }
}
