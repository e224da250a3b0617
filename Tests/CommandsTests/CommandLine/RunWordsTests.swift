// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Policy
internal import Testing

/// The words of `insula run`.
@Suite struct RunWordsTests {
  private func error(_ words: String...) -> String {
    let description = RunCommand.description
    do throws(UsageError) {
      _ = try RunCommand(ParsedArguments(words, for: description))
      return ""
    } catch {
      return error.message
    }
  }

  @Test func everythingAfterArgsIsTheApps() throws {
    let parsed = try ParsedArguments(
      ["Notes", "--env", "A=b", "--args", "--user", "-x", "--", "", "--help"], for: RunCommand.description)
    #expect(parsed.positional == ["Notes"] && !parsed.wantsHelp)
    #expect(parsed.allValues("args") == ["--user", "-x", "--", "", "--help"])
    #expect(error("Notes", "--args").isEmpty)
    #expect(error("Notes", "ls", "--args", "x").contains("'--args' is for the app itself"))
    #expect(error("Notes", "--args=x").contains("as words of their own"))
  }

  @Test func commandWithOptionsIsToldHowItIsWritten() {
    #expect(
      error("Notes", "ls", "-l").contains(
        "write '--' before a command with options of its own: 'insula run Notes -- ls -l'"))
    #expect(error("Notes", "git", "--version").contains("'insula run Notes -- git --version'"))
    #expect(error("Notes", "-l").hasPrefix("run: unknown option '-l'; see"))
    #expect(!error("Notes", "ls\u{1b}", "-l").contains("\u{1b}"))
  }

  @Test(arguments: [
    ("HOME=/", "sandbox"), ("PATH=/x", "sandbox"), ("XDG_CONFIG_HOME=/x", "sandbox"), ("TMPDIR=/", "sandbox"),
    ("APP_SANDBOX_CONTAINER_ID=x", "sandbox"), ("INSULA_TERMINAL=own", "Insula's own"),
    ("LD_PRELOAD=/x.so", "loader"), ("LD_AUDIT=/x", "loader"), ("GCONV_PATH=/x", "loader"),
    ("GLIBC_TUNABLES=x", "loader"), ("LOCPATH=/x", "loader"), ("MALLOC_CHECK_=3", "loader"),
    ("NAME", "has no '='"), ("=x", "not a name"), ("1A=x", "not a name"), ("A B=x", "not a name"),
    ("A\u{1b}[2J=x", "not a name"), ("", "has no '='"),
  ])
  func variableOfAnotherIsRefused(text: String, reason: String) {
    let message = error("Notes", "--env", text)
    #expect(message.contains(reason) && !message.contains("\u{1b}"), "\(message)")
  }

  @Test(arguments: ["A=", "LANG=C", "_x1=a=b", "http_proxy=http://x", "LC_ALL=C", "home=1"])
  func variableOfTheAppsOwnIsTaken(text: String) {
    #expect(error("Notes", "--env", text).isEmpty)
  }

  @Test(arguments: [
    ("--memory=1", "--memory: it must be at least 16 MiB"), ("--memory=lots", "or 'none'"),
    ("--processes=-1", "--processes: '-1' is not"), ("--cpu=50", "as in 50%"), ("--files=0", "at least 16"),
  ])
  func senselessLimitsAreRefused(word: String, reason: String) {
    #expect(error("Notes", word).contains(reason))
  }

  /// Who runs the app pays for what it uses.
  @Test func chosenLimitsCountMoreThanTheBundles() throws {
    let words = ["Notes", "--memory", "1G", "--processes=none", "--cpu=none", "--files", "16"]
    let chosen = try ChosenLimits(
      ParsedArguments(words, for: RunCommand.description), for: RunCommand.description)
    var bundles = ResourceLimits()
    (bundles.memory, bundles.processes) = (64 << 20, 5)
    let limits = chosen.over(bundles)
    #expect(
      limits.memory == 1 << 30 && limits.processes == nil && limits.cpu == nil && limits.openFiles == 16)
    #expect(chosen.has(.memory) && !chosen.has(.processes))
    #expect(chosen.words == ["--memory=1G", "--processes=none", "--cpu=none", "--files=16"])
  }
}
