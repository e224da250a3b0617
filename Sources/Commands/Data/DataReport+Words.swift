// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps

extension DataReport {
  var words: String {
    func number(_ count: Int, _ one: String, _ many: String) -> String {
      "\(count) \(count == 1 ? one : many)"
    }
    return number(count.files, "file", "files") + ", " + number(count.links, "link", "links") + ", "
      + "\(count.bytes) bytes"
  }

  /// Says what did not come over.
  func tell(_ console: Console) {
    for omission in omissions { console.note("\(omission.path): \(omission.reason)") }
  }
}
