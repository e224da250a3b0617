// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import TestSupport
internal import Testing

/// Tests use a copy of a clone that others can't reach, or whose path is several words for a shell.
@Suite struct CheckoutTests {
  @Test func openPlainPathsNeedNoCopy() throws {
    let temporary = try TemporaryDirectory()
    #expect(Checkout.problem(of: try temporary.makeDirectory("clone")) == nil)
    for name in ["a clone", "it's", "$HOME", "ü"] {
      #expect(Checkout.problem(of: try temporary.makeDirectory(name))?.contains("plain") == true, "\(name)")
    }
    try temporary.makeDirectory("closed", mode: 0o700)
    #expect(Checkout.problem(of: try temporary.makeDirectory("closed/clone"))?.contains("user") == true)
    #expect(Checkout.problem(of: temporary.appending("missing")) != nil)
  }

  @Test(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
  func mountedTreesNeedACopy() throws {
    let mounted = try MountedStore.mounted()
    #expect(Checkout.problem(of: mounted.path("Library/Fonts"))?.contains("of a program") == true)
  }

  @Test func theProgramIsThere() {
    #expect(access(Program.insula, X_OK) == 0)
    #expect(access(Checkout.path("Package.swift"), R_OK) == 0)
  }
}
