// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
@testable internal import Store
internal import TestSupport

/// A new store in a directory of its own.
struct TestStore {
  let temporary: TemporaryDirectory
  var path: String { temporary.appending("store") }

  init() throws {
    temporary = try TemporaryDirectory()
    try Store.create(at: path, Self.description)
  }

  static var description: StoreDescription {
    StoreDescription(
      mode: Program.isRoot ? .system : .rootless,
      adminGroup: .init(name: "daemon", gid: Program.isRoot ? 1 : ProcessID.group))
  }

  func open(_ access: Store.Access = .exclusive) throws(StoreError) -> Store {
    try Store(opening: path, access)
  }
}
