// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import Bundles
internal import Policy
internal import PropertyLists
internal import Store
internal import Testing

/// For what an app may ask, by its bundle and its signature.
struct AppPrivacyTests {
  private func privacy(
    _ info: [(key: String, value: PropertyList)], _ signed: [(key: String, value: PropertyList)] = []
  ) throws -> AppPrivacy {
    let all = [(key: "CFBundleIdentifier", value: PropertyList.string("org.example.player"))] + info
    return try AppPrivacy(
      try BundleInfo(try #require(PropertyList.Dictionary(all))),
      try #require(
        PropertyList.Dictionary(signed.map { (key: "com.apple.security." + $0.key, value: $0.value) })))
  }

  @Test func textsAreTheBundlesOwn() throws {
    let texts = try privacy([
      ("NSPhotoLibraryUsageDescription", .string("Shows them.")), ("NSContactsUsageDescription", .string("")),
      ("NSCalendarsUsageDescription", .string("old")),
      ("NSCalendarsFullAccessUsageDescription", .string("new")),
      ("NSRemindersUsageDescription", .integer(1)),
      ("NSAppleMusicUsageDescription", .string(String(repeating: "x", count: 10_000_000))),
    ]).texts
    #expect(texts[.photos] == "Shows them." && texts[.calendars] == "new")
    #expect(texts[.contacts] == nil && texts[.reminders] == nil)
    #expect(texts[.mediaLibrary]?.count == 1000)
  }

  /// What is written above and below a letter takes room, too.
  @Test func textsHaveALength() throws {
    let text = "a" + String(repeating: "\u{301}", count: 1_000_000)
    let texts = try privacy([("NSPhotoLibraryUsageDescription", .string(text))]).texts
    #expect(texts[.photos]?.utf8.count == 1999)
  }

  @Test func foldersAreForThoseWhoseUsersChoose() throws {
    let chooser = "files.user-selected.read-only"
    #expect(try !privacy([]).isChooser)
    #expect(try privacy([], [(chooser, .boolean(true))]).isChooser)
    #expect(try !privacy([], [(chooser, .boolean(false))]).isChooser)
    for isChooser in [false, true] {
      #expect(PrivacyService.documents.mayBeAskedFor(byChooser: isChooser) == isChooser)
      #expect(PrivacyService.photos.mayBeAskedFor(byChooser: isChooser))
      #expect(!PrivacyService.appData.mayBeAskedFor(byChooser: isChooser))
    }
  }

  /// Only of folders and volumes, and where it is too old, need an app say nothing.
  @Test func appsSayWhyTheyAsk() throws {
    let new = try privacy([("NSPhotoLibraryUsageDescription", .string("Shows them."))])
    let old = try privacy([("DTSDKName", .string("iphoneos9.3"))])
    #expect(new.mayAsk(for: .photos) && !new.mayAsk(for: .contacts) && new.mayAsk(for: .documents))
    #expect(PrivacyService.allCases.allSatisfy { old.mayAsk(for: $0) })
    #expect(old.asksWithoutText(for: .photos) && !old.asksWithoutText(for: .documents))
    #expect(PrivacyService.allCases.allSatisfy { !new.asksWithoutText(for: $0) })
  }

  @Test(arguments: [
    ("iphoneos9.3", true), ("iphoneos10.0", false), ("iphoneos17", false), ("macosx10.13", true),
    ("macosx10.13.6", true), ("macosx10.14", false), ("macosx15.0", false), ("macosx", false),
    ("macosxx", false),
    ("macosx10.", true), ("macosx-1", false), ("macosx99999999999999999999", false), ("linux1", false),
    ("", false),
  ])
  func oldAppsNeedNoTexts(sdk: String, isOld: Bool) throws {
    #expect(AppPrivacy.isOlder(sdk) == isOld)
    #expect(try privacy([("DTSDKName", .string(sdk))]).isOlderThanTexts == isOld)
  }
}
