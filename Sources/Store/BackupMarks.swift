// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
package import Policy

// Who looks for ACLs and flags lists an object's attributes anyway, and finds there whether it is marked.

extension Metadata {
  /// Whether what has this name is marked to be left out of backups; false if that can't be told.
  package func isMarked(_ name: Name, in directory: FD) -> Bool {
    do throws(Errno) {
      let names = try withRoom(512) { (room) throws(Errno) in
        let count = try directory.attributeNames(of: name, into: room)
        return count == 0 ? [] : marks(in: UnsafeRawBufferPointer(rebasing: room[..<count]))
      }
      if names.isEmpty { return false }
    } catch .EOPNOTSUPP {
      return false
    } catch {
      // More names than there is room for, or an older kernel.
    }
    guard let object = try? directory.child(name) else { return false }
    return !marks(of: object.fd).isEmpty
  }

  /// The marks on an object that leave it out of backups.
  package func marks(of object: FD) -> [BackupMark] {
    BackupMark.allCases.filter { mark in
      (try? read(mark.name, of: object) { value in value.map { mark.excludes($0) } ?? false }) ?? false
    }
  }

  private func marks(in names: UnsafeRawBufferPointer) -> [BackupMark] {
    let names = names.split(separator: 0)
    return BackupMark.allCases.filter { mark in names.contains { $0.elementsEqual(mark.name) } }
  }
}
