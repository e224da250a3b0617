// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

extension Database {
  /// Throws unless all that the database consists of is ours, and nobody else may change it.
  ///
  /// SQLite writes into the database what the journal says. And with rights over the directory, others could
  /// put another file there at any moment.
  static func requireOurs(_ name: String, in directory: FD, path: String) throws(StoreError) {
    let place = String(path.dropLast(name.utf8.count + 1))
    func require(_ status: FileStatus, _ path: String) throws(StoreError) {
      guard status.st_uid == ProcessID.user else {
        throw .registryOfOthers(path: path, owner: status.st_uid)
      }
      guard status.isOursAlone else { throw .registryOfOthers(path: path, owner: nil) }
    }
    try require(try explaining("examine", place) { () throws(Errno) in try directory.status() }, place)
    for file in [name, name + "-journal"] {
      let path = "\(place)/\(file)"
      let status: FileStatus
      do throws(Errno) {
        status = try directory.status(of: file)
      } catch .ENOENT {
        continue
      } catch {
        throw StoreError(error, doing: "examine", path: path)
      }
      guard status.isRegular else {
        throw .registryDamaged(path: path, what: "it is \(status.kindWords), and not a file")
      }
      try require(status, path)
    }
  }
}
