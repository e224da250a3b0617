// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import JSON
internal import LinuxIO

/// What is written of a lease, for other machines to see.
struct LeaseRecord: Codable, Equatable, Sendable {
  /// Tells whoever has it from everybody else.
  let holder: String
  /// For people.
  let host: String
  /// The process that has it, for others on its machine.
  let boot: String
  let namespace: String
  let pid: Int32
  let began: String
  /// Grows with each renewal.
  var renewals: UInt64 = 0
  /// When the last renewal began, by a clock that says nothing to other machines.
  var renewedAt: UInt64 = 0
  var isReleased = false

  init(holder: String, host: String, _ process: ProcessIdentity) {
    self.holder = holder
    self.host = host
    (boot, namespace, pid, began) = (process.boot, process.namespace, process.pid, process.began)
  }

  var process: ProcessIdentity {
    ProcessIdentity(boot: boot, namespace: namespace, pid: pid, began: began)
  }

  /// The same for another process of this machine that goes on with it.
  func with(_ process: ProcessIdentity) -> LeaseRecord {
    var record = LeaseRecord(holder: holder, host: host, process)
    (record.renewals, record.renewedAt) = (renewals, renewedAt)
    return record
  }

  /// Always of one length, so that nothing of a longer one is left behind a shorter one.
  func encoded() throws(Errno) -> [UInt8] {
    guard let text = try? JSONText.encode(self), text.count < Self.length else { throw .EOVERFLOW }
    let blanks = Array(repeating: UInt8(ascii: " "), count: Self.length - 1 - text.count)
    return text + blanks + [UInt8(ascii: "\n")]
  }

  init?(_ text: [UInt8]) {
    guard let record = try? JSONText.decode(LeaseRecord.self, from: text) else { return nil }
    self = record
  }

  static let length = 1024
}
