// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Policy
internal import Testing

/// InsulaLimits of an Info.plist, which anybody may have written.
@Suite struct BundleLimitTests {
  private func info(_ limits: String) throws -> BundleInfo {
    let text =
      "<plist><dict><key>CFBundleIdentifier</key><string>org.example.a</string>\(limits)</dict></plist>"
    return try BundleInfo(reading: Array(text.utf8))
  }

  private func limits(_ entries: String) throws -> BundleInfo {
    try info("<key>InsulaLimits</key><dict>\(entries)</dict>")
  }

  @Test func limitsAreRead() throws {
    #expect(try info("").limits.kinds.isEmpty && limits("").limits.kinds.isEmpty)
    let found = try limits(
      "<key>Memory</key><string>512M</string><key>Processes</key><integer>20</integer>"
        + "<key>CPU</key><string>50%</string><key>OpenFiles</key><string>256</string>"
    ).limits
    #expect(
      found.memory == 512 << 20 && found.processes == 20 && found.cpu == 50 && found.openFiles == 256)
    #expect(try limits("<key>Memory</key><integer>16777216</integer>").limits.memory == 16 << 20)
    #expect(try limits("<key>CPU</key><integer>150</integer>").limits.cpu == 150)
  }

  @Test(arguments: [
    ("<key>Memory</key><integer>-1</integer>", "Memory: it must be at least 16 MiB"),
    ("<key>Memory</key><integer>9223372036854775807</integer>", "at most"),
    ("<key>Memory</key><integer>18446744073709551615</integer>", "neither an integer nor a string"),
    ("<key>Memory</key><string>99999999999999999999T</string>", "as in 512M"),
    ("<key>Memory</key><real>1e300</real>", "neither an integer nor a string"),
    ("<key>Memory</key><true/>", "neither an integer nor a string"),
    ("<key>Processes</key><array/>", "neither an integer nor a string"),
    ("<key>Processes</key><string></string>", "write a number"),
    ("<key>CPU</key><string>half</string>", "as in 50%"),
    ("<key>OpenFiles</key><integer>0</integer>", "at least 16"),
    ("<key>Memroy</key><string>512M</string>", "unknown key 'Memroy'; known are Memory, Processes"),
  ])
  func nonsenseIsRefused(entries: String, reason: String) throws {
    do throws(Finding) {
      _ = try BundleInfo(
        reading: Array(
          ("<plist><dict><key>CFBundleIdentifier</key><string>org.example.a</string>"
            + "<key>InsulaLimits</key><dict>\(entries)</dict></dict></plist>").utf8))
      Issue.record("\(entries) was taken")
    } catch {
      #expect(error.kind == .badInfoPlist && error.message.contains(reason), "\(error.message)")
    }
  }

  @Test(arguments: ["<array/>", "<string>512M</string>", "<integer>5</integer>"])
  func otherThanADictionaryIsRefused(value: String) {
    #expect(throws: Finding.self) { _ = try info("<key>InsulaLimits</key>\(value)") }
  }
}
