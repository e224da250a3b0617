// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Store
internal import TestSupport
internal import Testing

/// What is left when a program is killed while it installs, updates or removes an app.
///
/// It is killed at some two hundred of its system calls, or, with `INSULA_STOPS=all` (`make stops`), at each.
@Suite struct StoppedInstallerTests {
  private let fixture: AppFixture
  private let library: String

  init() throws {
    fixture = try AppFixture(isShared: true)
    library = "\(fixture.home)/Library"
  }

  // MARK: Stopping

  /// `begin` makes what it begins with, `check` looks at what is left.
  private func forEachStop(
    _ work: String, _ subject: String, points: Int = 200, begin: () throws -> Void,
    check: (_ at: String) throws -> Void
  ) throws {
    let words = [work, fixture.temporary.appending("store"), fixture.account.name, subject]
    try StoppedWork(words: words).forEachStop(points: points, begin: begin, check: check)
  }

  // MARK: Looking

  /// Nobody finds anything wrong, neither before nor after what was stopped is ended; and that leaves nothing
  /// behind.
  private func recover(_ at: String) throws {
    #expect(try fixture.damage() == [], "before, at \(at)")
    try fixture.installer().recover()
    #expect(try fixture.findings(deep: true) == [], "at \(at)")
    #expect(try fixture.registry.intents() == [], "at \(at)")
    #expect(try fixture.staged() == [], "at \(at)")
  }

  private func containers() -> [String] { (try? fixture.names("\(library)/Containers")) ?? [] }

  private func bundles() throws -> [String] { try fixture.names("\(fixture.home)/Applications") }

  private func isInstalled(_ version: String, _ name: String = "Editor.app") throws -> Bool {
    let apps = try fixture.registry.apps()
    let text = fixture.text("\(fixture.home)/Applications/\(name)/Contents/MacOS/editor")
    return apps.map(\.version) == [version] && apps.map(\.bundleName) == [name]
      && text == "#!/bin/sh\necho \(version)\n"
  }

  private func remove() throws {
    if try !fixture.registry.apps().isEmpty { try fixture.uninstall(of: fixture.users) }
    #expect(try bundles() == [] && containers() == [])
  }

  /// One of them so large that it is digested while it is copied.
  private func manyFiles() -> [String: String] {
    var files = Dictionary(uniqueKeysWithValues: (0..<8).map { ("Resources/\($0)/file", "\($0)") })
    files["Resources/large"] = String(repeating: "0123456789abcdef", count: 70_000)
    return files
  }

  // MARK: The three

  @Test func installationIsThereOrNot() throws {
    let source = try fixture.bundle {
      $0.files = manyFiles(); $0.groups = ["group.org.example"]
    }
    var seen: Set<Bool> = []
    try forEachStop("install-app", source) {
      try remove()
    } check: { at in
      try recover(at)
      let isThere = try isInstalled("1")
      #expect(
        isThere ? try bundles() == ["Editor.app"] : try fixture.registry.apps() == [] && bundles() == [],
        "at \(at)")
      seen.insert(isThere)
      // The next one can do it.
      if !isThere { try fixture.install(for: fixture.users) }
      #expect(try isInstalled("1"), "at \(at)")
    }
    #expect(seen == [false, true])
  }

  @Test(arguments: ["Editor.app", "Editor 2.app"]) func updateIsTheOldVersionOrTheNew(name: String) throws {
    try fixture.bundle("old/Editor.app") { $0.files = manyFiles() }
    let source = try fixture.bundle("new/\(name)") {
      $0.version = "2"; $0.files = manyFiles()
    }
    let letter = "\(library)/Containers/org.example.editor/Data/Documents/letter"
    var seen: Set<Bool> = []
    try forEachStop("update-app", source, points: name == "Editor.app" ? 200 : 100) {
      try remove()
      let old = try TemporaryDirectory.open(fixture.temporary.appending("old/Editor.app"))
      _ = try fixture.installer().install(old.fd, named: "Editor.app", for: fixture.users, by: .ourselves)
      try fixture.temporary.write("mine", to: "store/tree/\(letter)")
      // What is not its owner's would stay when the container goes.
      try check(
        lchown(fixture.temporary.appending("store/tree/\(letter)"), fixture.account.uid, fixture.account.gid))
    } check: { at in
      try recover(at)
      let isNew = try isInstalled("2", name)
      #expect(try isNew || isInstalled("1"), "at \(at)")
      #expect(try bundles() == [isNew ? name : "Editor.app"], "at \(at)")
      seen.insert(isNew)
      #expect(fixture.text(letter) == "mine", "at \(at)")
      if !isNew {
        let new = try TemporaryDirectory.open(source)
        _ = try fixture.installer().update(new.fd, named: name, for: fixture.users, by: .ourselves)
      }
      #expect(try isInstalled("2", name), "at \(at)")
    }
    #expect(seen == [false, true])
  }

  @Test func removalIsDoneOrNotBegun() throws {
    try fixture.bundle {
      $0.files = manyFiles(); $0.groups = ["group.org.example"]
    }
    var seen: Set<Bool> = []
    try forEachStop("uninstall-app", "org.example.editor") {
      if try fixture.registry.apps().isEmpty { try fixture.install(for: fixture.users) }
      #expect(try isInstalled("1"))
    } check: { at in
      try recover(at)
      let isThere = try isInstalled("1")
      let containers = containers()
      if isThere {
        #expect(containers == ["org.example.editor"], "at \(at)")
        try fixture.uninstall(of: fixture.users)
      } else {
        #expect(try fixture.registry.apps() == [] && bundles() == [] && containers == [], "at \(at)")
      }
      seen.insert(isThere)
    }
    #expect(seen == [false, true])
  }

  // MARK: Updates that wait

  private func kept() -> [String] { (try? fixture.temporary.names(in: "store/state/updates")) ?? [] }

  private func expectOnlyWhatWaits(_ at: String) throws -> Bool {
    let waiting = try fixture.registry.waitingUpdates()
    #expect(kept() == waiting.map(\.name), "at \(at)")
    return !waiting.isEmpty
  }

  private func begin() throws {
    try remove()
    let old = try TemporaryDirectory.open(fixture.temporary.appending("old/Editor.app"))
    _ = try fixture.installer().install(old.fd, named: "Editor.app", for: fixture.users, by: .ourselves)
  }

  @Test func updateWaitsOrDoesNot() throws {
    try fixture.bundle("old/Editor.app") { $0.files = manyFiles() }
    let source = try fixture.bundle("new/Editor.app") {
      $0.version = "2"; $0.files = manyFiles()
    }
    var seen: Set<Bool> = []
    try forEachStop("keep-update", source, points: 100) {
      try begin()
    } check: { at in
      try recover(at)
      #expect(try isInstalled("1"), "at \(at)")
      let waits = try expectOnlyWhatWaits(at)
      seen.insert(waits)
      guard waits else { return }
      for update in try fixture.registry.waitingUpdates() { _ = try fixture.installer().place(update) }
      #expect(try isInstalled("2") && kept() == [], "at \(at)")
    }
    #expect(seen == [false, true])
  }

  @Test(arguments: ["Editor.app", "Editor 2.app"]) func updateThatWaitedIsDoneOrWaitsOn(name: String) throws {
    try fixture.bundle("old/Editor.app") { $0.files = manyFiles() }
    let source = try fixture.bundle("new/\(name)") {
      $0.version = "2"; $0.files = manyFiles()
    }
    var seen: Set<Bool> = []
    try forEachStop("place-update", "-", points: 100) {
      try begin()
      let words = ["keep-update", fixture.temporary.appending("store"), fixture.account.name, source]
      try StoppedWork(words: words).finish()
      #expect(kept().count == 1)
    } check: { at in
      try recover(at)
      let waits = try expectOnlyWhatWaits(at)
      seen.insert(waits)
      #expect(try waits ? isInstalled("1") : isInstalled("2", name), "at \(at)")
      for update in try fixture.registry.waitingUpdates() { _ = try fixture.installer().place(update) }
      #expect(try isInstalled("2", name) && bundles() == [name] && kept() == [], "at \(at)")
    }
    #expect(seen == [false, true])
  }
}
