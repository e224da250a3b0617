// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import TestSupport
internal import Testing

/// A signed bundle that no code of ours has touched; `Tests/Fixtures/hand-made-bundle/make.py` makes it.
enum HandMadeBundle {
  /// Makes `Hand.app` and `root.pem` in a directory.
  static func make(in directory: TemporaryDirectory) throws {
    let script = Checkout.path("Tests/Fixtures/hand-made-bundle/make.py")
    let result = try Program.run(["python3", script], in: directory.path)
    try #require(result.status == 0, "\(result.errors)")
  }
}
