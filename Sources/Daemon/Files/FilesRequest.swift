// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import JSON
internal import LinuxIO
internal import Policy

/// Where a user wants to have a view of their documents, and in which languages.
package struct FilesRequest: Codable, Equatable, Sendable {
  /// A path without links.
  package let mountPoint: String
  /// As `LANGUAGE` has them.
  package let languages: String

  package init(mountPoint: String, languages: String) {
    self.mountPoint = mountPoint
    self.languages = languages
  }
}

/// Where a files view is mounted.
struct FilesMount: Codable, Equatable {
  let user: UInt32
  let group: UInt32
  let path: String
  private let major: UInt32
  private let minor: UInt32

  init(user: UInt32, group: UInt32, path: String, _ device: DeviceNumber) {
    self.user = user
    self.group = group
    self.path = path
    (major, minor) = (device.major, device.minor)
  }

  var device: DeviceNumber { DeviceNumber(major: major, minor: minor) }

  /// Takes it away; who uses it may finish.
  ///
  /// False if that can't be.
  @discardableResult
  func remove(by helper: MountHelper) -> Bool {
    do throws(Errno) {
      try helper.remove(device, of: user, group)
      return true
    } catch {
      DaemonLog.write("can't remove the files view at \(path.sanitized): \(error.message)")
      return false
    }
  }
}

/// What the next worker is to know of a files view.
struct KeptFiles: Codable {
  let mount: FilesMount
  let languages: String

  var encoded: [UInt8] { (try? JSONText.encode(self)) ?? [] }

  /// Those that are known, by the numbers of their views.
  static func all(in kept: KeptState) -> [(view: UInt32, files: KeptFiles, memory: SharedMemory)] {
    kept.views.compactMap { view in
      guard let (bytes, memory) = kept.data(.files, view: view),
        let files = try? JSONText.decode(KeptFiles.self, from: bytes)
      else { return nil }
      return (view, files, memory)
    }
  }
}
