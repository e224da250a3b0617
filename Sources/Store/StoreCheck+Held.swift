// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

// What lies beside the tree and the homes, and belongs to nobody who could see it.

extension StoreCheck {
  /// Removed containers of which the registry has no row: nobody can restore them, and nothing deletes them.
  mutating func checkHeld(_ registry: Registry?) {
    checkOwnersOfHeld(registry)
    if store.state.has(StoreLayout.removedName), let held = try? store.openRemoved() {
      checkHeld(in: held.fd, "\(store.path)/\(StoreLayout.removedPath)", registry)
    }
    checkSetAside()
    let noted = ((try? registry?.volumes()) ?? []).filter { $0.place == .users && $0.kind == .directory }
    // What was not added on this machine leads nobody anywhere.
    let homes = VolumeNotes(of: store).known(noted)
    var sources: Set<[UInt8]> = []
    for home in homes where sources.insert(home.path).inserted {
      // Only a daemon gets to disks and servers.
      let place = "\(HomeSource.ownName)/\(store.description.uuid)/\(StoreLayout.removedName)"
      guard let source = openSource(of: home), let held = try? source.fd.openDirectory(at: place) else {
        continue
      }
      checkHeld(in: held.fd, "\(String(decoding: home.path, as: UTF8.self))/\(place)", registry)
    }
  }

  /// Removed containers are their homes' owners', whose numbers may have changed since.
  private mutating func checkOwnersOfHeld(_ registry: Registry?) {
    guard let registry, let all = try? registry.removedContainers(), !all.isEmpty,
      let homes = try? RemovedHomes(store, registry, countingAway: true)
    else { return }
    for removed in all where !homes.isTheirs(removed) && !removed.isBeingDeleted {
      let container = removed.container
      guard homes.isOthers(removed) else {
        found(
          .warning, "\(store.path)/tree/\(container.path)",
          "was removed, and waits: the home that it is from is not there, or nobody knows which it is",
          "when the home is there again, its owner has it; if it will not be, 'insula removed restore "
            + "\(removed.number)' puts it into the home of uid \(container.user), and 'insula removed delete "
            + "\(removed.number)' deletes it")
        continue
      }
      found(
        .failure, "\(store.path)/tree/\(container.path)",
        "was removed, and is noted for uid \(container.user), whose home that is not; nobody can restore it",
        "'insula check --repair' or the next mount gives it to the owner of the home"
      ) { [store] () throws(Errno) in
        do throws(StoreError) {
          try store.followNumbers(in: registry)
          let now = try registry.removedContainers().first { $0.number == removed.number }
          if let now, try RemovedHomes(store, registry, countingAway: true).isOthers(now) {
            throw StoreError.noRemovedContainer(number: removed.number)
          }
        } catch {
          throw .EIO
        }
      }
    }
  }

  private func openSource(of home: VolumeRecord) -> OwnedFD? {
    let opened = try? home.path.withName { (path) throws(Errno) in
      try FD.cwd.openWithoutLinks(path, O_DIRECTORY | O_RDONLY)
    }
    guard let opened, let status = try? opened.fd.status(),
      ObjectIdentity(status, of: opened.fd) == home.identity
    else { return nil }
    return opened
  }

  private mutating func checkHeld(in held: FD, _ path: String, _ registry: Registry?) {
    let names = ((try? held.entries()) ?? []).map { String(decoding: $0.name, as: UTF8.self) }
    guard !names.isEmpty, let known = known(to: registry) else { return }
    for name in names.inOrder(by: <) where !known.contains(name) {
      // A daemon may have restored or deleted it since, or be about to note it.
      guard held.has(name), let now = self.known(to: registry), !now.contains(name), held.has(name) else {
        continue
      }
      found(
        .warning, "\(path)/\(name)", "is a removed container that the store has lost: nobody can restore it",
        "look at it as root; give its contents to its owner, or remove it with 'rm -r'")
    }
  }

  /// The numbers of removed containers, and of those that are just being removed; nil if that can't be told.
  private func known(to registry: Registry?) -> Set<String>? {
    guard let registry else { return [] }
    guard let removed = try? registry.removedContainers(), let containers = try? registry.containers() else {
      return nil
    }
    return Set(removed.map(\.container.uuid) + containers.map(\.uuid))
  }

  private mutating func checkSetAside() {
    guard store.state.has(StoreLayout.formerName),
      let former = try? store.directory.openDirectory(at: StoreLayout.formerPath),
      let entries = try? former.fd.entries()
    else { return }
    for name in entries.map({ String(decoding: $0.name, as: UTF8.self) }).inOrder(by: <) {
      found(
        .warning, "\(store.path)/\(StoreLayout.formerPath)/\(name)",
        "is what uid \(name.prefix { $0 != "-" }) had thrown away or removed before it got a new home",
        "give it to its owner, or remove it with 'rm -r'")
    }
  }
}
