// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy

// What the terminal and the page say in the same words.

extension StoragePart {
  var words: String {
    switch self {
    case .bundle: "app"
    case .documents: "documents"
    case .data: "data"
    case .caches: "caches"
    case .tmp: "temporary files"
    case .groups: "groups"
    case .icloud: "iCloud"
    }
  }
}

extension StorageSizes {
  /// The parts that take anything, the largest first.
  var largest: [(part: StoragePart, bytes: Int64)] {
    StoragePart.allCases.map { ($0, self[$0]) }.filter { $0.1 > 0 }.inOrder { $0.1 > $1.1 }
  }
}

extension StorageAdvice {
  /// What is found, and what to do about it.
  var words: String {
    let size = bytes.asSize
    switch kind {
    case .largeMedia:
      return "\(files("large media file")) in Documents (\(size)): every backup would contain \(them). "
        + "'insula backup exclude' leaves \(them) out; what can be made or fetched again belongs in Caches"
    case .misplaced:
      return "\(files("file")) (\(size)) outside of Documents, tmp and the directories of Library, "
        + "where an app is to keep nothing: move or delete \(them)"
    case .unnamedSupport:
      return
        "\(files("file")) (\(size)) in Application Support that \(isOne ? "is" : "are") not in a directory "
        + "with the identifier of the app: other apps' files may have the same names elsewhere"
    case .unused:
      let days = Self.unusedSeconds / 86_400
      return "not used for \(days) days (\(size)): 'insula uninstall' removes the app"
    }
  }

  private var isOne: Bool { count == 1 }
  private var them: String { isOne ? "it" : "them" }
  private func files(_ noun: String) -> String { "\(count) \(noun)\(isOne ? "" : "s")" }
}

extension StorageReport.Item {
  /// Whose it is, where several users' are shown.
  var userWords: String {
    guard let user else { return "everyone" }
    return Account.numbered(user)?.name ?? "uid \(user)"
  }

  /// When its sizes were found, if that was not just now.
  func wasMeasuredBefore(_ now: Int64) -> Int64? {
    let minute = measured.addingReportingOverflow(60)
    return minute.overflow || minute.partialValue > now ? nil : measured
  }

  var lastRunWords: String { isRunning ? "running" : lastRun.map(utcText) ?? "-" }
}

extension AvailableSpace {
  var used: Int64 { total - free }

  var words: String {
    "\(used.asSize) of \(total.asSize) used, \(free.asSize) free; \(importantUsage.asSize) for important use "
      + "(with what could be purged), \(opportunisticUsage.asSize) for what can wait"
  }
}

extension Int64 {
  /// A number of bytes for people.
  var asSize: String { Int(clamping: self).asSize }

  /// Which share of a whole it is, in parts of `parts`: a tenth, say.
  func share(of whole: Int64, in parts: Int64) -> Int {
    guard whole > 0, self > 0 else { return 0 }
    let share = Double(Swift.min(self, whole)) / Double(whole) * Double(parts)
    return Int(share.rounded())
  }
}
