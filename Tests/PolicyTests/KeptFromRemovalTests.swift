// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

@Suite struct KeptFromRemovalTests {
  private func reason(
    _ flags: FileFlags = [], uid: UInt32 = 501, _ kind: Object.Kind = .file
  ) -> KeptReason? {
    reasonToKeep(uid: uid, kind: kind, flags: flags, whenRemovedFor: 501)
  }

  @Test(arguments: [Object.Kind.file, .directory, .symlink, .special])
  func onlyWhatIsTheOwnersGoes(kind: Object.Kind) {
    #expect(reason(kind) == nil)
    for other in [0, 1, 502] as [UInt32] { #expect(reason(uid: other, kind) == .owner(other)) }
    for flag in [FileFlags.userImmutable, .systemImmutable, .userAppend, .systemAppend, .noUnlink] {
      #expect(reason(flag, kind) == .flags(flag), "\(flag.words)")
      #expect(reason([flag, .hidden], uid: 0, kind) == .owner(0))
    }
    for flag in [FileFlags.hidden, .noDump, .opaque, .archived] { #expect(reason(flag, kind) == nil) }
  }

  private func reason(uid: UInt32 = 501, _ kind: Object.Kind) -> KeptReason? { reason([], uid: uid, kind) }
}
