// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import LinuxIO

extension Containers {
  /// Removes the containers of apps that are gone; what was stopped on the way there is ended.
  ///
  /// One that can't be removed keeps none of the others, and is tried again the next time.
  @discardableResult
  package func removeDoomed() throws(StoreError) -> [ContainerRecord] {
    try clearWorkshop()
    let doomed = try registry.containers(isDoomed: true)
    var failure: StoreError?
    for record in doomed {
      do throws(StoreError) { try remove(record) } catch { failure = failure ?? error }
    }
    if let failure { throw failure }
    return doomed
  }

  /// Removes a container and all that is in it.
  package func remove(_ record: ContainerRecord) throws(StoreError) {
    do throws(Errno) {
      try take(record)
    } catch {
      throw StoreError(error, doing: "remove the container", path: "\(path)/\(record.path)")
    }
  }

  private func take(_ record: ContainerRecord) throws(Errno) {
    do throws(Errno) {
      try tree.fd.withParent(of: record.path) { (parent, name) throws(Errno) in
        try name.withName { (name) throws(Errno) in
          // Through a mount its list and its flags would hold it.
          let container = try parent.child(name)
          access.clear(container.fd)
          // In one step it is no container any more, and out of its owner's reach.
          try workshop.take(name, from: parent) { (workshop, name) throws(Errno) in
            forget(record)
            try access.removeTree(name, in: workshop)
          }
        }
      }
    } catch .ENOENT, .ENOTDIR, .ELOOP {
      // It is gone, or its home is.
      forget(record)
    }
  }

  /// What is not forgotten now is found to be gone the next time.
  private func forget(_ record: ContainerRecord) { try? registry.forget(record) }
}
