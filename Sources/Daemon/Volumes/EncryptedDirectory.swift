// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import JSON
internal import LinuxIO

/// A directory in which gocryptfs has encrypted files.
///
/// Its configuration is its owner's to write, and says how much memory and time the password takes. gocryptfs
/// bounds neither; what it may have at all is bounded where it is started.
struct EncryptedDirectory: Decodable {
  private struct Derivation: Decodable {
    let cost: Int64
    let block: Int64
    let parallel: Int64

    // As gocryptfs writes them.
    private enum CodingKeys: String, CodingKey {
      case cost = "N"
      case block = "R"
      case parallel = "P"
    }
  }
  private let derivation: Derivation

  private enum CodingKeys: String, CodingKey { case derivation = "ScryptObject" }

  private static let configurationName = EncryptedFiles.configuration
  private static let mostConfiguration = 1 << 16
  private static let mostMemory: Int64 = 1 << 30

  /// Throws unless gocryptfs can be expected to open it.
  static func check(_ directory: FD) throws(VolumeFailure) {
    let bytes: [UInt8]
    do throws(Errno) {
      let file = try directory.open(configurationName, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
      guard try file.fd.status().isRegular else { throw .EINVAL }
      bytes = try file.fd.readToEnd(limit: mostConfiguration + 1)
    } catch {
      throw .configuration(
        error == .ENOENT
          ? "it has no \(configurationName), so gocryptfs has encrypted nothing there"
          : "its \(configurationName) can't be read: \(error.message)")
    }
    guard bytes.count <= mostConfiguration, let found = try? JSONText.decode(Self.self, from: bytes) else {
      throw .configuration(
        "its \(configurationName) is damaged; without it nothing can be decrypted: put a copy in its place")
    }
    try found.checkCosts()
  }

  /// scrypt takes 128 bytes for each block of each step, and a time in proportion to that.
  private func checkCosts() throws(VolumeFailure) {
    let factors = [derivation.block, derivation.parallel, 128]
    var memory = derivation.cost
    for factor in factors where memory >= 0 {
      let product = memory.multipliedReportingOverflow(by: factor)
      memory = product.overflow || factor < 0 ? -1 : product.partialValue
    }
    guard (0...Self.mostMemory).contains(memory) else {
      throw .configuration(
        "its \(Self.configurationName) asks for more than 1 GiB of memory and time to match, just to try a "
          + "password; it is damaged, or somebody's trap")
    }
  }
}
