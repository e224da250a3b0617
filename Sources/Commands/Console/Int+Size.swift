// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension Int {
  /// A number of bytes for people.
  var asSize: String {
    let units = ["bytes", "KB", "MB", "GB", "TB"]
    var size = Double(self)
    var unit = 0
    while size >= 1000, unit < units.count - 1 {
      size /= 1000
      unit += 1
    }
    guard unit > 0 else { return "\(self) bytes" }
    let tenths = Int((size * 10).rounded())
    return size < 10 ? "\(tenths / 10).\(tenths % 10) \(units[unit])" : "\((tenths + 5) / 10) \(units[unit])"
  }
}
