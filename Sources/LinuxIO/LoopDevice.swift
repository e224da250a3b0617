// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// A disk that is made of a file; it goes when nobody has it open any more.
package enum LoopDevice {
  /// Corresponds to `losetup(8)`, with `LOOP_CONFIGURE`.
  ///
  /// Whoever asks what it is made of gets `name` for an answer, if there is one.
  package static func make(
    of file: FD, isReadOnly: Bool, called name: String? = nil
  ) throws(Errno) -> OwnedFD {
    let (getFree, configure): (UInt, UInt) = (0x4c82, 0x4c0a)
    let control = try FD.cwd.openFollowing("/dev/loop-control", O_RDWR)
    // Somebody else may be faster.
    for _ in 0..<16 {
      let number = try check(clx_ioctl(control.fd.raw, getFree, nil))
      let device = try FD.cwd.openFollowing("/dev/loop\(number)", isReadOnly ? O_RDONLY : O_RDWR)
      // struct loop_config {fd u32, block_size u32, struct loop_info64, reserved u64[8]}.
      var config = [UInt8](repeating: 0, count: 304)
      let (flagsOffset, readOnly, autoClear): (Int, UInt32, UInt32) = (60, 1, 4)
      let done = config.withUnsafeMutableBytes { bytes in
        bytes.storeBytes(of: UInt32(bitPattern: file.raw), as: UInt32.self)
        bytes.storeBytes(
          of: autoClear | (isReadOnly ? readOnly : 0), toByteOffset: flagsOffset, as: UInt32.self)
        for (index, byte) in (name ?? "").utf8.prefix(Image.nameLength - 1).enumerated() {
          bytes[flagsOffset + 4 + index] = byte
        }
        return clx_ioctl(device.fd.raw, configure, bytes.baseAddress) == 0
      }
      if done { return device }
      let error = Errno.last
      guard error == .EBUSY else { throw error }
    }
    throw .EBUSY
  }

  /// What a disk is made of: some bytes of a file.
  package struct Image {
    /// What `LOOP_GET_STATUS64` tells: struct loop_info64.
    private var words = [UInt](repeating: 0, count: 29)

    /// All of a file.
    package init(_ file: FileStatus, isReadOnly: Bool) {
      words[0] = file.st_dev
      words[1] = file.st_ino
      words[2] = file.st_rdev
      words[5] = UInt(UInt32.max)
      words[6] = isReadOnly ? 1 << 32 : 0
    }

    /// Nil for what is no loop device, or one that is made of nothing.
    package init?(of device: FD) {
      guard clx_ioctl(device.raw, 0x4c05, &words) == 0 else { return nil }
    }

    /// That of a loop device which the caller may not even be allowed to open.
    private init?(named name: String) {
      guard let path = Self.path(of: name) else { return nil }
      if let device = try? FD.cwd.openFollowing("/dev/" + name, O_RDONLY | O_NONBLOCK),
        let image = Image(of: device.fd)
      {
        self = image
      } else {
        guard let status = try? FD.cwd.status(of: path) else { return nil }
        self.init(status, isReadOnly: FD.text(of: "/sys/block/\(name)/ro", limit: 8)?.hasPrefix("1") == true)
      }
    }

    private var name: String { "loop\(UInt32(truncatingIfNeeded: words[5]))" }
    private var end: UInt { words[4] == 0 ? .max : words[3] &+ words[4] }
    package var isReadOnly: Bool { words[6] >> 32 & 1 != 0 }
    /// Whether it goes with its last user, as those of mount(8) and ours do.
    package var isPassing: Bool { words[6] >> 32 & 4 != 0 }

    package static func path(of name: String) -> String? {
      FD.text(of: "/sys/block/\(name)/loop/backing_file", limit: 4096).map {
        String($0.prefix { $0 != "\n" })
      }
    }

    /// The file, if it is still where it was.
    package func openFile() -> OwnedFD? {
      guard let path = Self.path(of: name), let found = try? FD.cwd.openFollowing(path, pathOnly),
        let status = try? found.fd.status(), isOfSameFile(as: Image(status, isReadOnly: true))
      else { return nil }
      return try? found.fd.reopened(O_RDONLY | O_NONBLOCK)
    }

    /// A block device is the same by each of its nodes.
    private func isOfSameFile(as other: Image) -> Bool {
      words[2] == other.words[2] && (words[2] != 0 || words[..<2] == other.words[..<2])
    }

    /// Whether another loop device is made of some of these bytes, and either may be written to.
    package func isShared(isReadOnly: Bool) -> Bool {
      Self.any(besides: name) { other in
        other.isOfSameFile(as: self) && other.words[3] < end && words[3] < other.end
          && !(isReadOnly && other.isReadOnly)
      }
    }

    /// Whether a loop device is made of a block device, by whatever name, and either may be written to.
    package static func isMade(ofDevice device: FileStatus, isReadOnly: Bool) -> Bool {
      any { $0.words[2] == device.st_rdev && !(isReadOnly && $0.isReadOnly) }
    }

    /// How many loop devices were made with a name.
    package static func count(called name: String) -> Int {
      var count = 0
      _ = any { image in
        if image.isCalled(name) { count += 1 }
        return false
      }
      return count
    }

    /// How long the kernel's field for it is.
    static let nameLength = 64

    private func isCalled(_ name: String) -> Bool {
      let (first, given) = (7, Array(name.utf8) + [0])
      return given.count <= Self.nameLength
        && given.indices.allSatisfy { index in
          UInt8(truncatingIfNeeded: words[first + index / 8] >> (8 * UInt(index % 8))) == given[index]
        }
    }

    private static func any(besides own: String? = nil, _ isMeant: (Image) -> Bool) -> Bool {
      guard let blocks = try? FD.cwd.openFollowing("/sys/block", O_RDONLY | O_DIRECTORY),
        let entries = try? blocks.fd.entries()
      else { return false }
      return entries.map { String(decoding: $0.name, as: UTF8.self) }.contains { name in
        name.hasPrefix("loop") && name != own && Image(named: name).map(isMeant) == true
      }
    }
  }
}
