// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// Limits as people and bundles write them.
@Suite struct LimitTextTests {
  private typealias Kind = ResourceLimits.Kind

  private static let sizes: [(String, Int64)] = [
    ("16M", 16_777_216), ("512M", 536_870_912), ("512m", 536_870_912), ("512MiB", 536_870_912),
    ("2G", 2_147_483_648), ("1T", 1_099_511_627_776), ("20000K", 20_480_000), ("16777216", 16_777_216),
    ("0512M", 536_870_912),
  ]

  @Test(arguments: sizes)
  func sizesAreRead(text: String, value: Int64) throws {
    #expect(try Kind.memory.value(of: text) == value)
  }

  @Test func othersAreRead() throws {
    #expect(try Kind.cpu.value(of: "50%") == 50 && Kind.cpu.value(of: "250%") == 250)
    #expect(try Kind.processes.value(of: "1") == 1 && Kind.openFiles.value(of: "16") == 16)
  }

  private static let nonsense: [(Kind, String, String)] = [
    (.memory, "", "as in 512M"), (.memory, "M", "as in 512M"), (.memory, "1.5G", "as in 512M"),
    (.memory, "-1", "as in 512M"), (.memory, "+5M", "as in 512M"), (.memory, " 5M", "as in 512M"),
    (.memory, "512MB", "as in 512M"), (.memory, "0x10M", "as in 512M"), (.memory, "１６M", "as in 512M"),
    (.memory, "0", "at least 16 MiB"), (.memory, "1M", "at least 16 MiB"),
    (.memory, "9999999T", "at most 1024 TiB"), (.memory, "9223372036854775807T", "at most 1024 TiB"),
    (.memory, "99999999999999999999", "as in 512M"),
    (.memory, String(repeating: "9", count: 100_000), "too long"), (.memory, "\u{1b}[2J", "?[2J"),
    (.cpu, "50", "as in 50%"), (.cpu, "0%", "at least 1%"), (.cpu, "100001%", "at most 100000%"),
    (.processes, "0", "at least 1"), (.processes, "5%", "write a number"),
    (.processes, "many", "write a number"),
    (.openFiles, "15", "at least 16"), (.openFiles, "1K", "write a number"),
  ]

  @Test(arguments: nonsense)
  private func nonsenseIsRefused(kind: Kind, text: String, reason: String) {
    do throws(LimitRefusal) {
      _ = try kind.value(of: text)
      Issue.record("'\(text)' was taken")
    } catch {
      #expect(error.reason.contains(reason) && !error.reason.contains("\u{1b}"), "\(error.reason)")
    }
  }

  @Test(arguments: ResourceLimits.Kind.allCases)
  func numbersOutOfRangeAreRefused(kind: ResourceLimits.Kind) throws {
    for value in [Int64.min, -1, 0, kind.range.lowerBound - 1, kind.range.upperBound + 1, .max] {
      #expect(throws: LimitRefusal.self) { _ = try kind.checked(value) }
    }
    for value in [kind.range.lowerBound, kind.range.upperBound] { #expect(try kind.checked(value) == value) }
  }

  @Test func limitsAreToldInWords() {
    var limits = ResourceLimits()
    #expect(limits.text.isEmpty && limits.kinds.isEmpty)
    (limits.memory, limits.processes, limits.cpu, limits.openFiles) = (512 << 20, 1, 150, 64)
    #expect(limits.text == "512 MiB of memory, 1 process, 150% of a CPU, 64 open files")
    limits.memory = 16 << 20 + 1
    #expect(limits.text.hasPrefix("16777217 bytes of memory, "))
  }
}
