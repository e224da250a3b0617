// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
package import Store

/// A new store in a directory of its own.
package struct TestStore {
  package let temporary: TemporaryDirectory
  package var path: String { temporary.appending("store") }

  package init(ignoresCase: Bool = false) throws {
    temporary = try TemporaryDirectory()
    try Store.create(at: path, Self.description(ignoresCase: ignoresCase))
  }

  package static var description: StoreDescription { description(ignoresCase: false) }

  private static func description(ignoresCase: Bool) -> StoreDescription {
    StoreDescription(
      mode: Program.isRoot ? .system : .rootless,
      adminGroup: .init(name: "daemon", gid: Program.isRoot ? 1 : ProcessID.group), ignoresCase: ignoresCase)
  }

  package func open(_ access: Store.Access = .exclusive) throws(StoreError) -> Store {
    try Store(opening: path, access)
  }
}
