// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
@testable internal import Store
internal import TestSupport
internal import Testing

@Suite struct WorkshopTests {
  @Test func onlyTheWorkOfProcessesThatAreGoneIsCleared() throws {
    let temporary = try TemporaryDirectory()
    let directory = try temporary.open()
    let workshop = Workshop(directory: directory.fd, prefix: "work-")
    let living = Process()
    living.executableURL = URL(fileURLWithPath: "/bin/sleep")
    living.arguments = ["100"]
    try living.run()
    defer {
      kill(living.processIdentifier, SIGKILL)
      living.waitUntilExit()
    }
    let gone = Process()
    gone.executableURL = URL(fileURLWithPath: "/bin/true")
    try gone.run()
    gone.waitUntilExit()
    let kept = [
      "work-\(living.processIdentifier)-x", "work-\(getpid())-y", "work-x-1",
      "other-\(gone.processIdentifier)-x",
    ]
    for name in kept + ["work-\(gone.processIdentifier)-x"] { try temporary.makeDirectory(name) }
    try workshop.clear { (directory, name) throws(Errno) in try directory.removeTree(name) }
    #expect(try temporary.names(in: ".").sorted() == kept.sorted())
  }
}
