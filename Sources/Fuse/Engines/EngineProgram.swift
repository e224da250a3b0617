// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// A program that serves a filesystem, or has the kernel serve it, with its words.
struct EngineProgram: Equatable {
  let path: String
  let words: [String]
  /// What people call it.
  let name: String
  /// Where it keeps what it uploads later.
  private(set) var uploads: UploadCache?

  /// The programs that serve formats, with their packages in Debian.
  private static let ofFormats: [DiskFormat.Kind: (program: String, package: String)] = [
    .ext4: ("fuse2fs", "fuse2fs"), .ntfs: ("ntfs-3g", "ntfs-3g"), .exfat: ("mount.exfat-fuse", "exfat-fuse"),
    .iso9660: ("fuseiso", "fuseiso"), .squashfs: ("squashfuse", "squashfuse"),
  ]

  /// Serves a disk with a program.
  init(serving kind: DiskFormat.Kind, at disk: String, isReadOnly: Bool, at place: String)
    throws(EngineFailure)
  {
    guard let (program, package) = Self.ofFormats[kind] else {
      throw EngineFailure(
        .ENODEV, "no program is known that serves \(kind.rawValue); let the kernel do it ('--engine kernel')")
    }
    let options = isReadOnly ? ["-o", "ro"] : []
    let path = try Self.find(program, in: package)
    let words: [String] =
      switch kind {
      case .ntfs: ["-o", "no_detach" + (isReadOnly ? ",ro" : ""), disk, place]
      // It goes to the background: in the foreground it tells of each request, which takes longer than that.
      case .exfat: options + [disk, place]
      case .iso9660: ["-n", disk, place, "-f"]
      default: ["-f"] + options + [disk, place]
      }
    self.init(path: path, words: words, name: program)
  }

  /// Whether a program serves what this kernel does not know.
  static func isAlternative(for name: String) -> Bool {
    guard let kind = DiskFormat.Kind(rawValue: name), ofFormats[kind] != nil,
      let known = FD.text(of: "/proc/filesystems", limit: 1 << 16)
    else { return false }
    return !known.split(whereSeparator: \.isWhitespace).contains { $0.elementsEqual(name) }
  }

  /// Lets the kernel mount a disk.
  init(
    mounting kind: DiskFormat.Kind, at disk: String, isReadOnly: Bool, _ others: [String] = [],
    at place: String
  ) throws(EngineFailure) {
    var options = ["nosuid", "nodev"] + others
    if isReadOnly { options.append("ro") }
    // An image could ask for a panic of the machine.
    if kind == .ext4 { options.append("errors=remount-ro") }
    let path = try Self.find("mount", in: "mount")
    self.init(
      path: path,
      // Without helpers (-i): those are programs that would serve, as root, what anybody may have written.
      words: ["-i", "-n", "-t", kind.rawValue, "-o", options.joined(separator: ","), "--", disk, place],
      name: kind.rawValue)
  }

  /// Brings a server's directory here.
  init(
    _ address: ServerAddress, for user: EngineUser, isReadOnly: Bool, at place: String
  ) throws(EngineFailure) {
    switch address.scheme {
    case .sftp:
      var options = [
        "reconnect", "ServerAliveInterval=15", "ServerAliveCountMax=3", "BatchMode=yes", "ConnectTimeout=20",
      ]
      if let port = address.port { options.append("port=\(port)") }
      if isReadOnly { options.append("ro") }
      let host = address.host.utf8.contains(UInt8(ascii: ":")) ? "[\(address.host)]" : address.host
      let from = (address.user.map { $0 + "@" } ?? "") + host + ":" + address.path
      self.init(
        path: try Self.find("sshfs", in: "sshfs"),
        words: ["-f", "-o", options.joined(separator: ","), from, place], name: "sshfs")
    case .dav, .davs:
      let scheme = address.scheme == .dav ? "http" : "https"
      let port = address.port.map { ":\($0)" } ?? ""
      let quoted = "\(scheme)://\(address.host)\(port)\(address.path)".filter { $0 != "\"" }
      let name = address.user.map { ",user=\"\($0)\"" } ?? ""
      let remote = ":webdav,url=\"\(quoted)\"\(name):"
      try self.init(rclone: remote, for: user, isReadOnly: isReadOnly, at: place)
    case .rclone:
      try self.init(
        rclone: "\(address.host):\(address.path)", for: user, isReadOnly: isReadOnly, at: place)
    case .gluster:
      let names = address.path.parts(between: "/").map(String.init)
      guard let name = names.first else {
        throw EngineFailure(.EINVAL, "write 'gluster://HOST/VOLUME', or a directory of it")
      }
      let below = names.dropFirst().joined(separator: "/")
      self.init(
        path: try Self.find("glusterfs", in: "glusterfs-client"),
        words: [
          "--no-daemon", "--volfile-server=\(address.host)", "--volfile-id=\(name)", "--log-file=/dev/stderr",
          "--log-level=ERROR",
        ] + (below.isEmpty ? [] : ["--subdir-mount=/\(below)"])
          + (isReadOnly ? ["--read-only"] : []) + [place], name: "glusterfs")
    case .nfs, .smb:
      var options = ["nosuid", "nodev"]
      if isReadOnly { options.append("ro") }
      if let port = address.port { options.append("port=\(port)") }
      // A server that does not answer is no reason to wait for ever.
      if address.scheme == .nfs { options += ["softerr", "timeo=100", "retrans=3"] }
      if let user = address.user { options.append("username=\(user)") }
      let host = address.host.utf8.contains(UInt8(ascii: ":")) ? "[\(address.host)]" : address.host
      let from = address.scheme == .nfs ? "\(host):\(address.path)" : "//\(host)\(address.path)"
      let type = address.scheme == .nfs ? "nfs" : "cifs"
      self.init(
        path: try Self.find("mount", in: "mount"),
        words: ["-n", "-t", type, "-o", options.joined(separator: ","), "--", from, place], name: type)
    }
  }

  /// Decrypts what gocryptfs has encrypted, in the directory and with the password of an ``EngineInput``.
  init(decryptingAt place: String, hasDisk: Bool, isReadOnly: Bool) throws(EngineFailure) {
    var directory = "/proc/self/fd/\(EngineInput.directoryNumber)"
    var words = ["-fg", "-q", "-nosyslog"] + (isReadOnly ? ["-ro"] : [])
    if hasDisk {
      directory += "/" + EncryptedFiles.onDisk
      let given = "/proc/self/fd/\(EngineInput.configurationNumber)/"
      words += ["-config", given + EncryptedFiles.configuration]
    }
    self.init(
      path: try Self.find("gocryptfs", in: "gocryptfs"), words: words + ["--", directory, place],
      name: "gocryptfs")
  }

  /// Mends what is damaged on a disk where nobody has to decide about it, and repeats its journal.
  init(mending disk: String) throws(EngineFailure) {
    self.init(path: try Self.find("e2fsck", in: "e2fsprogs"), words: ["-p", disk], name: "e2fsck")
  }

  /// Formats the image of a disk, which it has open by that number.
  ///
  /// What is discarded would not be reserved any more.
  init(formatting image: Int32) throws(EngineFailure) {
    self.init(
      path: try Self.find("mkfs.ext4", in: "e2fsprogs"),
      words: [
        "-q", "-F", "-b", "4096", "-m", "0", "-E", "nodiscard,lazy_itable_init=1,root_owner=0:0",
        "/proc/self/fd/\(image)",
      ], name: "mkfs.ext4")
  }

  /// What a program means by the status with which it ends, where that is known.
  func meaning(ofEnd status: Int32, saying text: String) -> EngineFailure? {
    guard name == "gocryptfs" else { return nil }
    return switch status {
    case 9: EngineFailure(.EINVAL, "the password is empty")
    case 12: EngineFailure(.EKEYREJECTED, "the password is wrong")
    case 11: EngineFailure(.EBADMSG, "its \(EncryptedFiles.configuration) can't be used: \(text)")
    default: nil
    }
  }

  private init(
    rclone remote: String, for user: EngineUser, isReadOnly: Bool, at place: String
  ) throws(EngineFailure) {
    let cache = UploadCache(of: remote, for: user)
    let words = [
      // With no delay at all, what fails once is not tried again.
      "mount", "--vfs-cache-mode", "writes", "--vfs-write-back", "1s", "--cache-dir", cache.path,
      "--dir-cache-time", "5s", "--contimeout", "20s", "--timeout", "60s", "--retries", "1",
      "--low-level-retries", "2", "--ask-password=false", "--use-mmap",
    ]
    self.init(
      path: try Self.find("rclone", in: "rclone"),
      words: words + (isReadOnly ? ["--read-only"] : []) + ["--", remote, place], name: "rclone")
    uploads = cache
  }

  init(path: String, words: [String], name: String) {
    self.path = path
    self.words = words
    self.name = name
  }

  static let searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

  static func find(_ program: String, in package: String) throws(EngineFailure) -> String {
    let places = searchPath.parts(between: ":").map { "\($0)/\(program)" }
    guard let path = places.first(where: { access($0, X_OK) == 0 }) else {
      throw EngineFailure(
        .ENOENT, "\(program) is not installed; install it (Debian: 'apt install \(package)'), and try again")
    }
    return path
  }
}
