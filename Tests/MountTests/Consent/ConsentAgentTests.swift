// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import TestSupport
internal import Testing

/// Whoever is asked, and whoever waits for that.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ConsentAgentTests {
  /// However many wait, there is one prompt, and all go on.
  @Test func stormGivesOnePrompt() throws {
    let fixture = try ConsentFixture()
    let result = try fixture.shell(
      """
      agent allow deny
      inside \(ConsentFixture.player) '
        cd "$HOME_OF_USER"
        i=0; while [ $i -lt 1000 ]; do cat Music/Music/song & i=$((i+1)); done | sort | uniq -c'
      kill $agentpid; grep -c number $agent
      """)
    let words = result.output.split(whereSeparator: \.isWhitespace)
    #expect(words == ["1000", "song", "1"], "\(result)")
  }

  /// A text of few letters that takes much room, by what is written above and below them, is cut like
  /// others: a question that is too long would be asked by no agent, nor anything after it.
  @Test func questionsHaveALength() throws {
    let fixture = try ConsentFixture()
    let letter = "a" + String(repeating: "\u{301}", count: 400)
    let text = String(repeating: letter, count: 1000)
    try fixture.fixture.install(
      "Tall", info: "<key>NSContactsUsageDescription</key><string>\(text)</string>")
    let result = try fixture.shell(
      """
      agent allow allow
      inside org.example.tall 'ls -A "$HOME_OF_USER/Library/Application Support/AddressBook"; echo listed'
      inside \(ConsentFixture.player) 'cat "$HOME_OF_USER/Music/Music/song"'
      kill $agentpid; grep -c done $agent; wc -c < $agent
      """)
    let lines = result.output.split(separator: "\n")
    try #require(lines.count == 4, "\(result)")
    #expect(lines[0] == "listed" && lines[1] == "song" && lines[2] == "2", "\(result)")
    #expect(Int(lines[3]).map { $0 < 20_000 } == true, "\(result)")
  }

  /// An agent that goes leaves what it was asked to the next one, or it comes to nothing.
  @Test func agentsMayFail() throws {
    let fixture = try ConsentFixture()
    let try1 = "inside \(ConsentFixture.player) 'cat \"$HOME_OF_USER/Music/Music/song\"' 2>&1"
    let crashed = try fixture.shell("agent crash; \(try1); grep -c number $agent")
    #expect(crashed.output.hasSuffix("Operation not permitted\n1\n"), "\(crashed)")
    #expect(try fixture.state(of: "media-library") == "not-determined")
    // Closed without an answer is no answer; and nobody is asked again at once.
    let closed = try fixture.shell(
      "agent dismiss allow; \(try1); \(try1); kill $agentpid; grep -c number $agent")
    #expect(closed.output.hasSuffix("Operation not permitted\n1\n"), "\(closed)")
    #expect(try fixture.state(of: "media-library") == "not-determined")
    // One hangs and is ended, another one takes over.
    let taken = try fixture.shell(
      """
      sleep 10; agent hang; hanging=$agentpid; first=$agent
      {
        until grep -q number $first || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
        agent allow; kill $hanging; wait $agentpid; cat $agent
      } > $first-2 &
      \(try1); wait; cat $first-2
      """)
    #expect(taken.output.hasPrefix("song\nready\n") && taken.output.hasSuffix("done\n"), "\(taken)")
  }

  /// What is answered twice or by a number of somebody else's changes nothing.
  @Test func answersCountOnce() throws {
    let fixture = try ConsentFixture()
    let result = try fixture.shell(
      """
      agent twice wrong
      inside \(ConsentFixture.player) 'cat "$HOME_OF_USER/Music/Music/song"; ls "$HOME_OF_USER/Pictures"' 2>&1
      kill $agentpid; grep -v number $agent
      """)
    // 116 is ESTALE. The second agent's task ends with the agent.
    #expect(result.output.hasPrefix("song\n"), "\(result)")
    #expect(result.output.contains("ready\ndone\nfailed 116\nfailed 116\n"), "\(result)")
    #expect(try fixture.state(of: "media-library") == "authorized")
    #expect(try fixture.state(of: "photos") == "not-determined")
  }

  /// Who waits can be ended, and a decision that comes later finds nobody.
  @Test(arguments: [false, true])
  func waitingCanBeInterrupted(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    let result = try fixture.shell(
      """
      agent hang
      inside \(ConsentFixture.player) '
        timeout 1 cat "$HOME_OF_USER/Music/Music/song"; echo $?
        timeout -s KILL 1 ls "$HOME_OF_USER/Music"; echo $?
        (cat "$HOME_OF_USER/Music/Music/song"; echo late) & echo on'
      insula ps; kill $agentpid; decide allow media-library
      """)
    #expect(result.output == "124\n137\non\nNo apps are running.\nauthorized\n", "\(result)")
  }

  /// Whoever waits goes on waiting when the process that serves is replaced, and agents are there again.
  @Test(arguments: [false, true])
  func waitingOutlivesTheProcessThatServes(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    let out = try fixture.fixture.mounted.temporary.makeDirectory("out", mode: 0o777) + "/out"
    let begun = try fixture.shell(
      """
      agent hang
      setsid "$INSULA" run --store "$POINT" --env HOME_OF_USER='\(fixture.home)' \(ConsentFixture.player) -- \
        sh -c 'cat "$HOME_OF_USER/Music/Music/song"' > '\(out)' 2>&1 < /dev/null &
      until grep -q number $agent || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      """)
    try #require(begun.status == 0, "\(begun)")
    try fixture.fixture.succeed("restart", fixture.fixture.mounted.store)
    let after = try fixture.shell(
      """
      agent allow; until grep -q . '\(out)' || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      cat '\(out)' $agent
      """)
    #expect(after.output.hasPrefix("song\nready\n") && after.output.hasSuffix("done\n"), "\(after)")
  }
}
