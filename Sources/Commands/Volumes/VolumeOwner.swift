// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Policy

/// Whose volume is meant: users choose the names, so a name alone never stands for another user's.
enum VolumeOwner {
  static let option = CommandDescription.Option(
    name: "user", value: "NAME", help: "the volume of this user (default: yours, or everyone's); root only",
    kind: .account)

  /// Why nothing is done with another user's.
  static func failure(_ volume: VolumeDescription) -> CommandFailure {
    CommandFailure(
      .failed,
      "\(volume.name.sanitized) is a volume of \(volume.audience.sanitized), and nothing was done; if "
        + "that is meant, add '--user \(volume.audience.sanitized)'")
  }
}
