// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Testing

struct FirstResultTests {
  /// What is there once may be gone when it is asked for again.
  @Test func eachIsAskedOnce() {
    var asked: [Int] = []
    let found = [1, 2, 3].firstResult { number -> Int? in
      defer { asked.append(number) }
      return number == 2 && !asked.contains(2) ? 20 : nil
    }
    #expect(found == 20 && asked == [1, 2])
    #expect([Int]().firstResult { Optional($0) } == nil)
  }
}
