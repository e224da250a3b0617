// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO

/// A session bus for the app: xdg-dbus-proxy passes on what the app may say, and what is for it.
///
/// It runs beside the sandbox, and ends when this process does, however that comes.
struct BusProxy {
  /// As long as this is open, the proxy goes on.
  private let life: SharedFD

  /// Starts it; `socket` is the path of the bus's own socket, and `offered` that of the app's.
  init(
    _ program: String, from socket: String, to offered: String, _ filter: BusFilter, _ context: Context
  ) throws(CommandFailure) {
    let words =
      [program, "--fd=\(Self.lifeDescriptor)", "unix:path=\(socket)", offered, "--filter"] + filter.words
    var alone = context
    alone.environment = [:]
    do throws(Errno) {
      let ends = try pipe()
      _ = try Subprocess.spawn(
        program, words, alone, descriptors: [(ends.write.fd, Self.lifeDescriptor)], inOwnSession: true)
      life = SharedFD(ends.takeRead())
      // It writes a byte when it listens. If it ends before, there is none.
      let said = try life.use { (fd) throws(Errno) -> Int in
        guard try fd.waitUntilReadable(milliseconds: Self.patience) else { throw Errno(ETIMEDOUT) }
        return try fd.readToEnd(limit: 1).count
      }
      guard said == 1 else { throw .ECONNREFUSED }
    } catch {
      throw CommandFailure(
        .failed, "can't start xdg-dbus-proxy for the app's session bus: \(error.message)")
    }
  }

  private static let lifeDescriptor: Int32 = 3
  private static let patience: Int32 = 5000
}
