// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

/// Control groups, version 2: directories in which the kernel counts and limits what processes use together.
///
/// Corresponds to `cgroups(7)`.
package enum Cgroup {
  private static let places = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]

  /// The root of what this process sees of them; nil where they are not mounted, or only version 1 is.
  package static func root() -> OwnedFD? {
    for place in places {
      if let found = try? FD.cwd.openFollowing(place, pathOnly | O_DIRECTORY),
        (try? found.fd.filesystemKind()) == .cgroups
      {
        return found
      }
    }
    return nil
  }

  /// The cgroup of a process, as a path below the root; nil if it is outside of what we see, or unknown.
  ///
  /// `process` is a number or "self".
  package static func path(of process: String) -> String? {
    path(in: FD.text(of: "/proc/\(process)/cgroup", limit: 1 << 16) ?? "")
  }

  /// The same from the lines of /proc/PID/cgroup: `0::/a/b`, or `7:cpu,memory:/a/b` where version 1 has a
  /// tree for a controller.
  static func path(in lines: String, controller: String? = nil) -> String? {
    for line in lines.parts(between: "\n") {
      let parts = line.parts(between: ":", max: 2, keepingEmpty: true)
      guard parts.count == 3, parts[2].begins(with: "/") else { continue }
      let isMeant =
        controller.map { parts[1].parts(between: ",").contains($0[...]) }
        ?? (parts[0] == "0" && parts[1].isEmpty)
      guard isMeant else { continue }
      return parts[2].parts(between: "/").contains("..") ? nil : String(parts[2].dropFirst())
    }
    return nil
  }
}

extension FilesystemKind {
  /// Corresponds to CGROUP2_SUPER_MAGIC.
  package static let cgroups = FilesystemKind(magic: 0x6367_7270)
}

/// What a descriptor of a cgroup's directory is asked.
extension FD {
  /// What is in a file of the cgroup, word by word.
  package func cgroupWords(_ name: String) throws(Errno) -> [Substring] {
    let file = try open(name, O_RDONLY)
    let text = String(decoding: try file.fd.readToEnd(limit: 1 << 20), as: UTF8.self)
    return text.split(whereSeparator: \.isWhitespace)
  }

  /// Writes one of its settings.
  package func setCgroup(_ name: String, _ value: String) throws(Errno) {
    let file = try open(name, O_WRONLY)
    try file.fd.writeAll(value.utf8)
  }

  /// Moves a process into the cgroup; 0 is the caller's own.
  package func takeIntoCgroup(_ process: Int32) throws(Errno) {
    try setCgroup("cgroup.procs", "\(process)")
  }

  /// A number behind a key, as in `memory.events`.
  package func cgroupCount(_ key: String, in name: String) -> Int64 {
    guard let words = try? cgroupWords(name), let index = words.firstIndex(where: { $0 == key }),
      words.indices.contains(index + 1)
    else { return 0 }
    return Int64(words[index + 1]) ?? 0
  }
}
