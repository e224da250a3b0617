// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import TestSupport
internal import Testing

/// What an app has by consent is taken back wherever its user has moved it, whatever was granted beside it.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct MovedConsentTests {
  /// `come FILE` waits for a file among an app's documents, for a minute at most.
  private static let come = """
    come() { n=0; until [ -e "$own/$1" ]; do n=$((n + 1)); [ $n -lt 1200 ] || exit 9; sleep 0.05; done; }
    """

  private func documents(_ fixture: ConsentFixture, _ app: String) -> String {
    "\(fixture.home)/Library/Containers/\(app)/Data/Documents"
  }

  /// An app's user moves the directory that the address book is in, of which something else was granted.
  @Test(arguments: [false, true])
  func aRefusalTakesItBackWhereItWasMoved(rootless: Bool) throws {
    let fixture = try ConsentFixture(rootless: rootless)
    let player = ConsentFixture.player
    let result = try fixture.shell(
      """
      cd '\(fixture.home)/Library'; support='Application Support'; \(Self.come)
      mkdir -p "$support/AddressBook" "$support/Other"
      echo first > "$support/AddressBook/card"; echo granted > "$support/Other/f"
      decide allow contacts; "$INSULA" grant --store "$POINT" \(player) "$PWD/$support/Other/f" > /dev/null
      out=$(mktemp); inside \(player) '
        own="$HOME/Documents"; cd "$HOME_OF_USER/Library"; \(Self.come)
        look() {
          for path in AS2/AddressBook/card "Application Support/AddressBook/card" AS2/Other/f; do
            cat "$path" 2> /dev/null || echo none; done
          head -c 1 <&3 2> /dev/null || echo none
        }
        exec 3< "Application Support/AddressBook/card"; touch "$own/ready"; come moved; look
        touch "$own/looked"; come refused; look' > $out 2>&1 &
      app=$!; own='\(documents(fixture, player))'
      come ready; mv "$support" AS2; mkdir -p "$support/AddressBook"
      echo second > "$support/AddressBook/card"; touch "$own/moved"; come looked
      decide deny contacts; touch "$own/refused"; wait $app; cat $out
      """)
    #expect(
      result.output
        == "authorized\ndenied\nnone\nsecond\ngranted\nnone\nnone\nnone\ngranted\nnone\n", "\(result)")
  }

  /// One place that an app has by a grant and by consent: taking back the one leaves the other.
  @Test func aGrantAndConsentAreTwo() throws {
    let fixture = try ConsentFixture()
    let player = ConsentFixture.player
    let grant = "--store \"$POINT\" \(player) \"$book\""
    let result = try fixture.shell(
      """
      book='\(fixture.home)/Library/Application Support/AddressBook'; \(Self.come)
      mkdir -p "$book"; echo card > "$book/card"
      decide allow contacts; "$INSULA" grant --read-write \(grant) > /dev/null
      out=$(mktemp); inside \(player) '
        own="$HOME/Documents"; cd "$HOME_OF_USER/Library/Application Support/AddressBook"; \(Self.come)
        for n in 1 2 3; do
          touch "$own/$n"; come "then-$n"
          cat "$HOME_OF_USER/Library/Application Support/AddressBook/card" 2>&1
        done' > $out 2>&1 &
      app=$!; own='\(documents(fixture, player))'
      come 1; decide deny contacts; touch "$own/then-1"
      come 2; decide allow contacts; "$INSULA" revoke \(grant) > /dev/null; touch "$own/then-2"
      come 3; decide deny contacts; touch "$own/then-3"; wait $app; cat $out
      """)
    let lines = result.output.split(separator: "\n")
    #expect(lines.prefix(6) == ["authorized", "denied", "authorized", "denied", "card", "card"], "\(result)")
    #expect(lines.count == 7 && lines.last?.hasSuffix("Operation not permitted") == true, "\(result)")
  }
}
