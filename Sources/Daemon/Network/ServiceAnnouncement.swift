// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy

// What computers announce by multicast DNS, as avahi-browse prints it.

extension NetworkShare {
  /// Kinds of services, and as what they are reached.
  ///
  /// Anybody on the network can announce anything. So only what a program without rights serves is taken,
  /// with the rights of whoever looks, and never what the kernel would mount.
  private static let kinds: [String: ServerAddress.Scheme] = [
    "_sftp-ssh._tcp": .sftp, "_webdav._tcp": .dav, "_webdavs._tcp": .davs,
  ]
  private static let most = 512

  /// What was found out about whom.
  static func announced(in text: String) -> [NetworkShare] {
    var found: [NetworkShare] = []
    for line in text.parts(between: "\n") where found.count < most {
      guard let share = announced(byLine: line) else { continue }
      // Each is there once for each interface and protocol.
      if !found.contains(where: { $0.host == share.host && $0.name == share.name }) { found.append(share) }
    }
    return found
  }

  /// A line is `=;eth0;IPv4;NAME;KIND;local;HOST.local;ADDRESS;PORT;TEXT...`.
  private static func announced(byLine line: Substring) -> NetworkShare? {
    let fields = line.parts(between: ";", max: 9, keepingEmpty: true).map(String.init)
    guard fields.count == 10, fields[0] == "=", let scheme = kinds[fields[4]], fields[6].hasSuffix(".local"),
      let port = UInt16(fields[8]), port > 0, let name = unescaped(fields[3]), name == name.sanitized
    else { return nil }
    let host = String(fields[6].dropLast(".local".count))
    let isPlain = host.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
        || byte == UInt8(ascii: "-")
    }
    guard isPlain, !host.hasPrefix("-"), host.utf8.count <= 63 else { return nil }
    let path = path(in: fields[9])
    guard let address = ServerAddress("\(scheme.rawValue)://\(host).local:\(port)\(path)") else { return nil }
    return NetworkShare(host: host, name: name, address: address, isForAll: false, isAnnounced: true)
  }

  /// The path in a text such as `"path=/music" "u=..."`.
  private static func path(in text: String) -> String {
    for word in text.parts(between: "\"") where word.begins(with: "path=/") {
      let path = word.dropFirst("path=".count)
      if path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "?") }) { return String(path) }
    }
    return "/"
  }

  /// What avahi-browse has written as `\032`, a byte in three decimal digits, or `\.`.
  private static func unescaped(_ text: String) -> String? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\") else {
        bytes.append(byte)
        continue
      }
      let digits = rest.prefix(3)
      if digits.count == 3, digits.allSatisfy({ (0x30...0x39).contains($0) }),
        let value = UInt8(String(decoding: digits, as: UTF8.self))
      {
        bytes.append(value)
        rest = rest.dropFirst(3)
      } else if let next = rest.popFirst() {
        bytes.append(next)
      }
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
