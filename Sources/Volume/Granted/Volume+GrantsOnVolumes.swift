// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store

// What was granted can be moved past the daemon: while none runs, or on a volume at any time.

extension Volume {
  /// A grant as it is found now; nil if what it is for can't be named any more, or is no part of the tree:
  /// whatever has taken its place on a volume is something else.
  func located(_ known: GrantRecord) -> (record: GrantRecord, steps: [ResolvedPath.Step])? {
    let resolved = resolvedPath(along: known.path, for: known.user)
    guard !resolved.isOnServer, resolved.found?.identity != known.identity else {
      return (known, resolved.steps)
    }
    var record = known
    if let volume = volume(along: resolved.steps, for: known.user) {
      if let object = object(known.identity, on: volume) {
        guard let path = kernelPath(of: object.fd), GrantPath.isPath(path) else { return nil }
        record.path = path
        let moved = resolvedPath(along: path, for: known.user)
        return moved.found?.identity == known.identity ? (record, moved.steps) : nil
      }
    } else if let path = path(of: known.identity), GrantPath.isPath(path) {
      record.path = path
      let moved = resolvedPath(along: path, for: known.user)
      if let found = moved.found { record.identity = found.identity }
      return (record, moved.steps)
    }
    // It is gone, so the grant is for what is at its path.
    if let found = resolved.found { record.identity = found.identity }
    return (record, resolved.steps)
  }

  private func volume(along steps: [ResolvedPath.Step], for user: UInt32) -> AttachedVolume? {
    for step in steps where attached.arePlaced(in: step.directory) {
      if let found = attached.find(step.name, in: step.directory, for: user) { return found }
    }
    return nil
  }

  /// Nil if it is not there any more, or there are no handles.
  private func object(_ identity: ObjectIdentity, on volume: AttachedVolume) -> OwnedFD? {
    guard settings.fileHandles, let handle = FileHandle(encoded: identity.handle),
      let object = try? volume.open(handle), let status = try? object.fd.status(), status.st_nlink > 0,
      ObjectIdentity(status, of: object.fd) == identity
    else { return nil }
    return object
  }

  /// Looks for a grant again, once the daemon has changed names on its way: a volume may have come.
  func findAgain(_ id: Int64) {
    guard let entry = grants.entry(id) else { return }
    let known = entry.record
    guard let (record, steps) = located(known) else {
      grants.remove(id)
      for view in grants.views(of: entry.holder) { view.granted.drop(known.place) }
      return grants.report([id])
    }
    var new = entry
    (new.record, new.steps) = (record, steps)
    let isMoved = record.path != known.path
    if isMoved { new.previousName = nil }
    grants.put(new)
    guard record != known else { return }
    if isMoved {
      let move = ScopeMove(old: known.path, new: record.path)
      for view in grants.views(of: entry.holder) { view.granted.follow([move]) }
    }
    grants.report([id])
  }
}
