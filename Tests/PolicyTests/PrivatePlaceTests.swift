// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Policy
internal import Testing

/// What an app has of a directory that takes its user's consent.
@Suite struct PrivatePlaceTests {
  private func position(_ scope: Scope, _ path: String) -> Position {
    path.split(separator: "/").reduce(scope.root) { scope.position(of: $1.utf8, in: $0) }
  }

  private func reach(_ scope: Scope, _ path: String) -> Reach { scope.reach(of: position(scope, path)) }

  private static let asking = PrivacyService.photos.withoutConsent(home: "ada")

  @Test func onlyItsNameIsThere() {
    let scope = Scope([Self.asking])
    #expect(scope.hasPrivatePlaces)
    #expect(reach(scope, "Users/ada") == .read)
    #expect(reach(scope, "Users/ada/Pictures") == .asks)
    #expect(reach(scope, "Users/ada/Pictures/All.photoslibrary") == .nothing)
    #expect(scope.path(ofPrivate: position(scope, "Users/ada/Pictures")) == Self.asking.path)
    #expect(scope.path(ofPrivate: position(scope, "Users/ada")) == nil)
  }

  @Test func allOfMusicMayBeTheMediaLibrary() {
    for isAll in [false, true] {
      let places = PrivacyService.mediaLibrary.withConsent(
        home: "ada", writesChosenFiles: false, allMusic: isAll)
      let scope = Scope(places)
      #expect(reach(scope, "Users/ada/Music/Music/a") == [.read, .revocable])
      #expect(reach(scope, "Users/ada/Music/Other/a") == (isAll ? [.read, .revocable] : .nothing))
    }
  }

  @Test func consentGivesWhatItIsAbout() {
    var scope = Scope([Self.asking])
    let places = PrivacyService.photos.withConsent(home: "ada", writesChosenFiles: false)
    for place in places { scope.admit(place) }
    scope.withdraw(Self.asking)
    #expect(!scope.hasPrivatePlaces)
    #expect(reach(scope, "Users/ada/Pictures") == .read)
    for name in ["All.photoslibrary", "x.photoslibrary"] {
      #expect(reach(scope, "Users/ada/Pictures/\(name)") == [.read, .write, .revocable])
      #expect(reach(scope, "Users/ada/Pictures/\(name)/a/b") == [.read, .write, .revocable])
    }
    for name in [".photoslibrary", "photoslibrary", "All.photoslibrary2", "holiday.jpg"] {
      #expect(reach(scope, "Users/ada/Pictures/\(name)") == .nothing)
    }
    let known = position(scope, "Users/ada/Pictures/All.photoslibrary/a")
    scope.admit(Self.asking)
    for place in places { scope.withdraw(place) }
    #expect(reach(scope, "Users/ada/Pictures/All.photoslibrary") == .nothing)
    #expect(scope.reach(of: known) == .nothing)
    #expect(reach(scope, "Users/ada/Pictures") == .asks)
  }

  /// Who grants all that is around it has not said anything about it.
  @Test func grantOfWhatIsAroundIsNone() {
    var scope = Scope([Self.asking])
    scope.admit(ScopePlace("Users/ada", [.read, .write, .revocable]))
    #expect(reach(scope, "Users/ada/Desktop/a") == [.read, .write, .revocable])
    #expect(reach(scope, "Users/ada/Pictures") == .asks)
    #expect(reach(scope, "Users/ada/Pictures/All.photoslibrary") == .nothing)
    #expect(scope.inside(position(scope, "Users/ada/Pictures")) == .nowhere)
    // What is in it can be granted, and so can the place itself.
    scope.admit(ScopePlace("Users/ada/Pictures/one.jpg", [.read, .revocable], isSubtree: false))
    #expect(reach(scope, "Users/ada/Pictures/one.jpg") == [.read, .revocable])
    #expect(reach(scope, "Users/ada/Pictures") == [.read, .asks])
    #expect(reach(scope, "Users/ada/Pictures/other.jpg") == .nothing)
    scope.admit(ScopePlace("Users/ada/Pictures", [.read, .revocable]))
    #expect(reach(scope, "Users/ada/Pictures/other.jpg").contains(.read))
    #expect(!reach(scope, "Users/ada/Pictures").contains(.asks))
  }

  /// What programs save beside a file that they were granted takes names that are free.
  @Test func foldersWithGrantedFilesDoNotAsk() {
    let asking = PrivacyService.documents.withoutConsent(home: "ada")
    var scope = Scope([asking])
    #expect(scope.hasPrivatePlaces)
    #expect(reach(scope, "Users/ada/Documents") == .asks)
    let granted = ScopePlace("Users/ada/Documents/letter", [.read, .write, .revocable], isSubtree: false)
    let around = ScopePlace("Users/ada", [.read, .write, .revocable])
    scope.admit(around)
    #expect(reach(scope, "Users/ada/Documents/other") == .nothing)
    scope.withdraw(around)
    scope.admit(granted)
    #expect(reach(scope, "Users/ada/Documents") == [.read, .beside])
    #expect(reach(scope, "Users/ada/Documents/letter") == [.read, .write, .revocable])
    #expect(reach(scope, "Users/ada/Documents/other") == .nothing)
    scope.withdraw(granted)
    #expect(reach(scope, "Users/ada/Documents") == .asks)
  }

  /// No name that anybody can give is a pattern.
  @Test func grantedNamesAreNoPatterns() {
    var scope = Scope([])
    scope.admit(ScopePlace("a/*.txt", [.read, .revocable]))
    #expect(reach(scope, "a/x.txt") == .nothing)
    #expect(ScopePlace.suffix(ofPattern: Array("*.txt".utf8)) == nil)
    #expect(ScopePlace.suffix(ofPattern: ScopePlace.pattern(".txt")).map(Array.init) == Array(".txt".utf8))
  }

  @Test func placesSurviveCompaction() {
    var scope = Scope([Self.asking])
    for place in PrivacyService.mediaLibrary.withConsent(home: "ada", writesChosenFiles: false) {
      scope.admit(place)
    }
    let followed = scope.compact()
    #expect(reach(scope, "Users/ada/Music/a.musiclibrary/b") == [.read, .revocable])
    #expect(reach(scope, "Users/ada/Pictures") == .asks)
    #expect(!followed.isEmpty)
  }

  /// Without consent, a directory can be found and passed through, by whoever asks; nothing else.
  @Test func onlyPassingIsAllowed() {
    let object = Object(
      uid: 1000, gid: 1000, mode: 0o700, kind: .directory, zone: .user, reach: [.read, .asks])
    for user: UInt32 in [1000, 0] {
      let caller = Credentials(uid: user, gid: user)
      for rights in [Rights.search, .readAttributes, .readSecurity, [.search, .readAttributes]] {
        #expect(decide(rights, on: object, by: caller) { _ in .notMember } == .allow)
      }
      for rights in [
        Rights.list, .addFile, .addSubdirectory, .deleteChild, .delete, .writeAttributes, .readExtended,
        .writeExtended, .writeSecurity, .takeOwnership, [.search, .list],
      ] {
        #expect(decide(rights, on: object, by: caller) { _ in .notMember } == .deny(.consent))
      }
      let child = Object(uid: 1000, gid: 1000, mode: 0o600, kind: .file, zone: .user)
      #expect(decide(.delete, on: child, in: object, by: caller) { _ in .notMember } == .deny(.consent))
      #expect(decide(.read, on: child, in: object, by: caller) { _ in .notMember } == .allow)
    }
  }
}
