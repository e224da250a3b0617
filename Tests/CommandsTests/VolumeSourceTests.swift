// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What somebody calls the source of a volume or of a home.
struct VolumeSourceTests {
  private let temporary: TemporaryDirectory
  private static let stranger: UInt32 = 65534

  init() throws {
    temporary = try TemporaryDirectory(mode: 0o1777)
    try temporary.makeDirectory("place")
    try temporary.write("x", to: "place/image")
  }

  /// What a path leads to; the message where it is refused.
  private func source(_ name: String) -> Result<VolumeWish.Source, Failure> {
    let context = Context(
      environment: [:], uid: ProcessID.user, home: "/", currentDirectory: "/", console: .standard)
    do {
      return .success(try VolumeWish.Source.named(temporary.appending(name), context).0)
    } catch {
      return .failure(Failure(message: (error as? CommandFailure)?.message ?? ""))
    }
  }

  private struct Failure: Error { let message: String }

  private func refuses(_ name: String, _ words: String) -> Bool {
    if case .failure(let failure) = source(name) { failure.message.contains(words) } else { false }
  }

  private func leads(_ name: String, to expected: VolumeWish.Source) -> Bool {
    if case .success(let found) = source(name) { found == expected } else { false }
  }

  /// Who has made a link decides where it leads, also after somebody has looked.
  @Test(.enabled(if: Program.isRoot)) func linksOfOthersAreNotFollowed() throws {
    try #require(symlink("place", temporary.appending("own")) == 0)
    try #require(symlink("place", temporary.appending("others")) == 0)
    try #require(symlink("place/image", temporary.appending("others-image")) == 0)
    for name in ["others", "others-image"] {
      try #require(lchown(temporary.appending(name), Self.stranger, Self.stranger) == 0)
    }
    #expect(leads("own", to: .directory))
    #expect(leads("own/image", to: .disk(temporary.appending("place/image"))))
    for name in ["others", "others/", "others/.", "others/image", "others-image", "own/../others"] {
      #expect(refuses(name, "a symbolic link of another user's is on the way"), "\(name)")
    }
  }

  /// An image is opened again at each mount, by its path.
  @Test(.enabled(if: Program.isRoot)) func imagesAreWhereNobodyElseExchangesThem() throws {
    let image = VolumeWish.Source.disk(temporary.appending("place/image"))
    #expect(leads("place/image", to: image))
    try #require(chmod(temporary.appending("place"), 0o777) == 0)
    #expect(refuses("place/image", "lets others put another one there"))
    #expect(leads("place", to: .directory))
    try #require(chmod(temporary.appending("place"), 0o1777) == 0)
    #expect(leads("place/image", to: image))
    try #require(chown(temporary.appending("place"), Self.stranger, 0) == 0)
    #expect(refuses("place/image", "who can put another one there"))
  }
}
