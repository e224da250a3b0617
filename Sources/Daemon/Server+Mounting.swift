// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization

// How the whole tree is mounted.

extension Server {
  /// Mounts over the directory that was opened for that, which is closed then.
  func mountDirectly(over given: FD?) throws -> OwnedFD {
    var settings = MountSettings()
    settings.source = options.source
    settings.flags = options.mountBits
    settings.allowOther = true
    guard let given else { throw ServeFailure.mount(mountPoint: mountPoint, .EBADF) }
    do throws(Errno) {
      let directory = OwnedFD(owning: given.raw)
      #if DEBUG
        Halt.at(.mountPointOpened)
      #endif
      let connection = try Mount.direct(over: directory.fd, settings)
      device.withLock { $0 = Self.device(mountedOver: directory.fd) }
      return connection
    } catch {
      if case .ENOENT = error, access("/dev/fuse", F_OK) != 0 { throw ServeFailure.noDevice(error) }
      throw ServeFailure.mount(mountPoint: mountPoint, error)
    }
  }

  /// What was just mounted over a directory, wherever that has been moved to meanwhile.
  private static func device(mountedOver directory: FD) -> DeviceNumber? {
    for _ in 0..<10 {
      guard let path = try? directory.ownPath(), let table = try? MountTable.current() else { return nil }
      if let mount = table.top(at: String(decoding: path, as: UTF8.self)) { return mount.device }
    }
    return nil
  }

  func mountThroughHelper() throws -> OwnedFD {
    do throws(Errno) {
      return try Mount.throughHelper(at: mountPoint, options: options.helperOptions)
    } catch {
      throw ServeFailure.helper(mountPoint: mountPoint)
    }
  }
}
