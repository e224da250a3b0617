// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// The machine's graphics processors: their nodes in /dev, and what /sys says of each.
///
/// Of those in /dev/dri only the nodes that render: the others also set what the screens show.
struct GraphicsDevices {
  struct Link {
    let path: String
    let target: String
  }

  /// Their paths.
  private(set) var nodes: [String] = []
  /// Directories of /sys, each mounted nowhere yet.
  private(set) var descriptions: [(path: String, mount: SharedFD)] = []
  /// How a program finds the description of a node, by its number.
  private(set) var links: [Link] = []

  /// Few machines have more than some of them.
  private static let most = 64

  /// Entering a namespace of our own must have come before, and leaving the tree must not.
  ///
  /// Whether the app is entitled to any, its daemon says only after that. So a machine that has none, as most
  /// that run nothing but servers, costs no more than a look at a few names.
  init() {
    guard Self.signs.contains(where: { access("/dev/" + $0, F_OK) == 0 }) else { return }
    let render = Self.nodes(in: "/dev/dri", atMost: Self.most) { $0.hasPrefix("renderD") }
    nodes = render + Self.nodes(in: "/dev", atMost: 4096, where: Self.isOfAVendor)
    var described: Set<String> = []
    for node in nodes.prefix(Self.most) {
      var status = stat()
      guard stat(node, &status) == 0, status.st_mode & S_IFMT == S_IFCHR else { continue }
      let number = UInt64(status.st_rdev)
      let path = "/sys/dev/char/\(clx_major(number)):\(clx_minor(number))"
      guard let target = try? FD.cwd.linkTarget(of: path) else { continue }
      links.append(Link(path: path, target: String(decoding: target, as: UTF8.self)))
      guard let device = realPath(path + "/device") ?? realPath(path),
        device.begins(with: "/sys/devices/"), described.insert(device).inserted,
        let directory = try? FD.cwd.open(device, pathOnly | O_DIRECTORY),
        let mount = try? DetachedMount.copy(of: directory.fd)
      else { continue }
      descriptions.append((device, SharedFD(mount)))
    }
  }

  /// Without one of these there is no other node.
  private static let signs = ["dri", "kfd", "nvidiactl", "nvidia0", "mali0"]

  private static func nodes(
    in directory: String, atMost limit: Int, where isWanted: (String) -> Bool
  ) -> [String] {
    guard let listing = try? FD.cwd.open(directory, O_RDONLY | O_DIRECTORY),
      let entries = try? listing.fd.entries(atMost: limit)
    else { return [] }
    return entries.filter { $0.type == UInt8(DT_CHR) }.map { String(decoding: $0.name, as: UTF8.self) }
      .filter(isWanted).inOrder(by: <).map { "\(directory)/\($0)" }
  }

  /// NVIDIA's and ARM's own drivers, and AMD's for computing.
  private static func isOfAVendor(_ name: String) -> Bool {
    if ["kfd", "nvidiactl", "nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools"].contains(name) {
      return true
    }
    return ["nvidia", "mali"].contains { prefix in
      name.hasPrefix(prefix) && name.utf8.count > prefix.utf8.count
        && name.utf8.dropFirst(prefix.utf8.count).allSatisfy { (0x30...0x39).contains($0) }
    }
  }
}
