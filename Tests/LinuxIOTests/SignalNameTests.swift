// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Testing

@Suite struct SignalEndTests {
  @Test(
    arguments: [
      (0, "ended with status 0"), (0x300, "ended with status 3"), (9, "was ended by signal 9 (SIGKILL)"),
      (0x8b, "was ended by signal 11 (SIGSEGV)"), (32, "was ended by signal 32"),
    ] as [(Int32, String)])
  func anEndIsSaidAsItWas(status: Int32, words: String) {
    #expect(SignalName.end(ofWaitStatus: status) == words)
  }
}
