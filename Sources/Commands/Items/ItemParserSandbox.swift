// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import LinuxIO
internal import Policy

/// What bubblewrap is told for the process that parses: the libraries of the machine, which can only be read,
/// and nothing else; no network, no environment, no other processes.
struct ItemParserSandbox {
  /// Through which the filter of system calls is passed.
  static let filterDescriptor: Int32 = 3

  let program: OwnProgram

  var words: [String] {
    var words = [
      "bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net",
      "--unshare-cgroup-try", "--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
      "--clearenv",
    ]
    words += Sandbox.system + ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    words += ["/nix", "/gnu"].flatMap { ["--ro-bind-try", $0, $0] }
    words += program.elsewhere.flatMap { ["--ro-bind", $0, $0] }
    words += Sandbox.processes
    words += PrivateItems.songs.fileExtensions.flatMap {
      ["--symlink", "/proc/self/fd/\(SongTags.descriptor)", SongTags.path(type: $0)]
    }
    return words + [
      "--remount-ro", "/", "--chdir", "/", "--seccomp", "\(Self.filterDescriptor)", "--", program.path,
      ItemParser.word,
    ]
  }

  /// O_WRONLY, O_RDWR, O_CREAT, O_TRUNC and O_TMPFILE.
  private static let writing: UInt32 = 0x0040_0243

  /// The system calls of a program that computes something of what it can read; all others fail.
  ///
  /// What it has open is in a filesystem that can be written, so all that would change something is no part
  /// of them, down to the mode of a file.
  static var filter: FilterProgram {
    var program = FilterProgram.start
    let reads: (FilterProgram.Part) -> [FilterProgram.Instruction] = { part in
      [
        .load(part), .ifAnyBit(of: writing, elseSkip: 1), .answer(.fails(.EROFS)), .answer(.allowed),
      ]
    }
    program += FilterProgram.when(clx_filter_openat(), reads(.third))
    // Younger architectures have no such call, and it has no number there.
    if let open = UInt32(exactly: clx_filter_open()) { program += FilterProgram.when(open, reads(.second)) }
    let room = 256
    let calls = [Int32](unsafeUninitializedCapacity: room) { calls, filled in
      filled = calls.baseAddress.map { Int(clx_parser_calls($0, UInt32(room))) } ?? 0
    }
    for call in calls.compactMap({ UInt32(exactly: $0) }) {
      program += FilterProgram.when(call, [.answer(.allowed)])
    }
    return FilterProgram(program + [.answer(.fails(.EPERM))])
  }
}

/// The file that this process was started from.
struct OwnProgram {
  let path: String
  /// What of it and its libraries apps and others see nothing of, since it is in no place of the machine's.
  let elsewhere: [String]

  init() throws(Errno) {
    let target = try FD.cwd.linkTarget(of: "/proc/self/exe")
    self.init(started: String(decoding: target, as: UTF8.self))
  }

  /// The same for another file with the same libraries.
  init(started path: String) {
    self.path = path
    var buffer = [CChar](repeating: 0, count: 1 << 16)
    let length = clx_libraries(&buffer, buffer.count)
    let libraries = String(decoding: buffer.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
      .parts(between: "\n").map(String.init)
    var elsewhere: [String] = []
    for file in [path] + libraries where !Self.isOfMachine(file) && !elsewhere.contains(file) {
      elsewhere.append(file)
    }
    self.elsewhere = elsewhere
  }

  private static func isOfMachine(_ path: String) -> Bool {
    Sandbox.places.contains { path.begins(with: $0 + "/") }
  }
}
