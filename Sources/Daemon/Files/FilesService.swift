// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store

/// Mounts views of users' documents where they want them.
final class FilesService: Sendable {
  private let store: Store
  private let server: Server
  private let apps: AppService

  init(_ store: Store, _ server: Server, _ apps: AppService) {
    self.store = store
    self.server = server
    self.apps = apps
  }

  func answer(_ request: FilesRequest, _ call: ControlCall) -> ControlAnswer {
    let (user, group) = (call.caller.uid, call.caller.gid)
    return .job(.launches) { _ in
      ControlReply { () throws(ControlFailure) in
        try self.mount(request, for: user, group)
        return .done
      }
    }
  }

  /// The daemon's own user wants one as well.
  func mountOwn(at path: String, _ languages: Languages) throws(ControlFailure) {
    let request = FilesRequest(mountPoint: path, languages: languages.names.joined(separator: ":"))
    try mount(request, for: ProcessID.user, ProcessID.group)
  }

  private func mount(_ request: FilesRequest, for user: UInt32, _ group: UInt32) throws(ControlFailure) {
    let path = request.mountPoint
    let names = path.parts(between: "/", keepingEmpty: true).dropFirst()
    guard path.begins(with: "/"), path.utf8.count < 4096, !path.utf8.contains(0),
      !names.contains(where: { ["", ".", ".."].contains($0) })
    else {
      throw ControlFailure("the mount point of a files view must be a plain absolute path", .EINVAL)
    }
    let tree = server.mountPoint
    guard !path.hasSameBytes(as: tree), !path.begins(with: tree == "/" ? tree : tree + "/") else {
      throw ControlFailure("a files view can't be mounted inside the store's own mount \(tree)", .EINVAL)
    }
    guard !server.files.all.contains(where: { $0.mount.user == user && $0.mount.path.hasSameBytes(as: path) })
    else {
      throw ControlFailure("your files view is mounted at \(path.sanitized) already", .EBUSY)
    }
    let home: String
    do throws(StoreError) { home = try store.home(of: user) } catch { throw ControlFailure(error) }
    let share: BudgetShare
    do throws(Errno) { share = try server.views.room(for: user) } catch {
      throw ControlFailure("you have too many running apps, backups and files views; end some first", error)
    }
    do throws(Errno) {
      let languages = Languages(list: request.languages).names.joined(separator: ":")
      let mount = FilesMounting(user: user, group: group, path: path, languages: languages)
      try server.mountFiles(mount, home: home, apps, share)
    } catch {
      throw ControlFailure("can't mount a files view at \(path.sanitized): \(Self.reason(error))", error)
    }
  }

  private static func reason(_ error: Errno) -> String {
    switch error {
    case .EACCES: "the directory must be yours, and you must be able to write to it"
    case .EBUSY: "nothing can be mounted on the filesystem that it lies on; choose a directory on a disk"
    case .ELOOP: "its path has a symbolic link in it"
    case .EPERM: "fusermount3 has refused; it must be set-user-ID root (package fuse3)"
    default: error.message
    }
  }
}
