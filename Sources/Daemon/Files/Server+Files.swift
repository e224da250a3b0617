// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Volume

/// What is to be mounted for whom.
struct FilesMounting {
  let user: UInt32
  let group: UInt32
  let path: String
  let languages: String
}

extension Server {
  /// Mounts a files view, and serves it.
  func mountFiles(
    _ wanted: FilesMounting, home: String, _ apps: AppService, _ share: BudgetShare
  ) throws(Errno) {
    let view = try filesView(of: wanted.user, home: home, apps, wanted.languages)
    do throws(Errno) {
      let made = try helper.mount(for: wanted.user, wanted.group, at: wanted.path)
      let mount = FilesMount(user: wanted.user, group: wanted.group, path: wanted.path, made.device)
      do throws(Errno) {
        let left = KeptFiles(mount: mount, languages: wanted.languages)
        let memory = try kept?.keep(left.encoded, as: .files, view: view.number)
        let connection = made.takeConnection()
        kept?.keep(connection.fd, as: .connection, view: view.number)
        let session = try Session(view, over: connection, settings: appSettings)
        let mounted = FilesViews.Mounted(mount: mount, view: view, share: share, kept: memory)
        guard files.add(mounted) else { throw .ECANCELED }
        try serve(session, of: view.number) { [files] in files.remove(view.number) }
        try waitUntilStarted(view) { files.has(view.number) }
      } catch {
        mount.remove(by: helper)
        throw error
      }
    } catch {
      kept?.forgetAll(of: view.number)
      // What its kernel would have said at the end.
      view.ended()
      throw error
    }
  }

  private func filesView(
    of user: UInt32, home: String, _ apps: AppService, _ languages: String, takingOver taken: UInt32? = nil
  ) throws(Errno) -> View {
    let known = KnownFiles(
      store, volume,
      { (making) throws(StoreError) in try making ? apps.openRegistry() : apps.knownRegistry() }, user: user,
      home: home, Languages(list: languages))
    return try volume.filesView(FilesTop { known.places($0) }, user: user, takingOver: taken)
  }

  // MARK: The next worker

  /// Makes the files views again that another worker has left; those that can't go on end.
  func takeoversOfFiles(_ kept: KeptState, _ apps: AppService) -> [FilesTakeover] {
    KeptFiles.all(in: kept).compactMap { number, left, memory in
      let connection = kept.descriptor(.connection, view: number)
      do throws(Errno) {
        guard let connection, let home = try? store.home(of: left.mount.user) else { throw .EIO }
        let share = try views.room(for: left.mount.user)
        let view = try filesView(
          of: left.mount.user, home: home, apps, left.languages, takingOver: number)
        guard let first = view.firstMessage else {
          view.ended()
          throw .ENOENT
        }
        let mounted = FilesViews.Mounted(mount: left.mount, view: view, share: share, kept: memory)
        return FilesTakeover(
          mounted: mounted, left: LeftView(view: view, connection: connection, firstMessage: first))
      } catch {
        DaemonLog.write("the files view at \(left.mount.path.sanitized) can't go on: \(error.message)")
        kept.forgetAll(of: number)
        if let connection { _ = close(connection.raw) }
        left.mount.remove(by: helper)
        return nil
      }
    }
  }

  /// Begins it again.
  func begin(_ takeover: FilesTakeover) throws(Errno) -> ServingOn? {
    try begin(takeover.left) {
      files.add(takeover.mounted)
    } ended: { [files] in
      files.remove(takeover.mounted.view.number)
    }
  }
}

/// A files view that can go on.
struct FilesTakeover {
  let mounted: FilesViews.Mounted
  let left: LeftView
}
