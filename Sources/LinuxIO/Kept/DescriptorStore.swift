// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// The service manager's store of descriptors, which outlives every process of the service.
///
/// Corresponds to `FDSTORE=1` of `sd_notify(3)`, and to `sd_listen_fds(3)`.
package final class DescriptorStore: Sendable {
  /// How the table is called that says what the others are.
  package static let table = "table"

  private let socket: OwnedFD

  /// The store of the service manager that waits for messages at `path`.
  package init(at path: String) throws(Errno) { socket = try serviceManager(at: path) }

  package func keep(_ fd: FD, as name: String) { send("FDSTORE=1\nFDNAME=\(name)", with: fd) }

  package func forget(_ name: String) { send("FDSTOREREMOVE=1\nFDNAME=\(name)") }

  // What is not kept is missed only if the keeper is killed.
  private func send(_ state: String, with fd: FD? = nil) {
    let bytes = Array(state.utf8)
    for _ in 0..<20 {
      do throws(Errno) {
        _ = try LocalSocket.send(bytes[...], with: fd, to: socket.fd)
        return
      } catch .EAGAIN {
        // It has much to read; a manager that never reads is not waited for.
        _ = try? socket.fd.waitUntilWritable(milliseconds: 50)
      } catch {
        return
      }
    }
  }

  /// What was stored, by name: the descriptors that this process was started with, if it was.
  package static func stored(_ environment: [String: String]) -> [String: FD] {
    guard environment["LISTEN_PID"] == String(getpid()),
      let count = environment["LISTEN_FDS"].flatMap({ Int($0) }), (1...1 << 16).contains(count)
    else { return [:] }
    let names = (environment["LISTEN_FDNAMES"] ?? "").parts(between: ":", keepingEmpty: true)
    var found: [String: FD] = [:]
    for (index, name) in names.prefix(count).enumerated() {
      let fd = FD(STDERR_FILENO + 1 + Int32(index))
      guard (try? fd.closeOnExecution(true)) != nil else { continue }
      found[String(name)] = fd
    }
    return found
  }
}
