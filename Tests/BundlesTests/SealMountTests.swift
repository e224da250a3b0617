// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import TestSupport
internal import Testing

/// Other filesystems inside a bundle.
@Suite(.enabled(if: Program.isRoot)) struct SealMountTests {
  @Test(arguments: ["Resources/deep", "Resources/a.dat", "_CodeSignature", "MacOS"])
  func whatIsMountedIsNotEntered(path: String) throws {
    let bundle = try TestBundle(.contents)
    try bundle.sign()
    let place = bundle.base + "/" + path
    // The same files, so that only the mount itself can be the reason.
    #expect(try Program.run(["mount", "--bind", place, place]).status == 0)
    let findings = bundle.findings()
    #expect(
      findings.contains {
        $0.path.hasPrefix("Contents/\(path)") && $0.detail == "a filesystem is mounted there"
      }, "\(findings)")
    #expect(try Program.run(["umount", place]).status == 0)
    #expect(bundle.findings().isEmpty)
  }
}
