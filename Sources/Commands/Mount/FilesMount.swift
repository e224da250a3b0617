// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy
internal import Store

/// `insula mount --files`: the daemon of a store mounts a view of the caller's documents.
struct FilesMount {
  private let store: String?
  private let mountPoint: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    guard arguments.allValues("o").isEmpty, !arguments.has("foreground") else {
      throw MountCommand.description.error("'--files' can't be combined with '-o' or '--foreground'")
    }
    let places = arguments.positional
    store = places.count > 1 ? places[0] : nil
    mountPoint = places.last
  }

  func mount(_ context: Context) throws -> ExitCode {
    var daemon = try RunningDaemon(store, context)
    let place = try Self.prepare(mountPoint, beside: daemon.store, context)
    let languages = Languages(environment: context.environment).names.joined(separator: ":")
    try daemon.mountFiles(FilesRequest(mountPoint: place, languages: languages))
    return .ok
  }

  /// Where the mount option `files` wants one; empty stands for the usual place.
  static func place(_ option: String?, beside store: Store, _ context: Context) throws -> String? {
    guard let option else { return nil }
    guard store.description.mode == .rootless else {
      throw CommandFailure(
        .failed,
        "the mount option 'files' is for a user's own store; on this one each user mounts their own view "
          + "with 'insula mount --files'")
    }
    let path = option.begins(with: "~/") ? context.home + option.dropFirst() : option
    return try prepare(path.isEmpty ? nil : path, beside: store.path, context)
  }

  private static func prepare(_ named: String?, beside store: String, _ context: Context) throws -> String {
    let path = try MountPoint.place(of: named ?? "\(context.home)/Files", context)
    // It is opened once more by who mounts, as the user, without links.
    _ = try MountPoint(path, isDefault: named == nil).prepare(allowingNonEmpty: false, store: store, context)
    return path
  }
}
