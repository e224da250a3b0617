// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// What an app gets of whoever starts it besides its view.
enum StandardStreams {
  private static let names = ["standard input", "standard output", "standard error"]

  /// Throws if one of them is a directory: from there a way leads up to the root of the machine, whatever is
  /// mounted where.
  ///
  /// Says so if the app will read nothing.
  static func check(_ console: Console) throws(CommandFailure) {
    for (number, name) in names.enumerated() {
      guard let status = try? FD(Int32(number)).status(), status.isDirectory else { continue }
      throw CommandFailure(
        .usage,
        "\(name) is a directory, from which the app could reach "
          + "the rest of the machine; use a file instead"
      )
    }
    if OtherTerminals.areRead {
      console.inform(
        "standard input is a terminal of another session, so the app reads nothing from it; "
          + "'su --pty' gives a command a terminal of its own, and '</dev/null' avoids this message")
    }
  }
}
