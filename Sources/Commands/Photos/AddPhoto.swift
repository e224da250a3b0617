// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// `insula add-photo`.
struct AddPhotoCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "add-photo",
    summary: "Adds photos of an app's to its user's photo library; for use inside an app.",
    arguments: [
      .init(
        name: "FILE", help: "a photo or video in the app's home", isRequired: true, kind: .file,
        isRepeated: true)
    ],
    details: [
      """
      Copies go into the user's photo library ('Pictures/*.photoslibrary'), which is made if there is none.
      The app sees nothing of the library. If its user has not decided yet whether it may add to their photos
      ('\(PrivacyService.photosAdd.rawValue)'), they are asked, and this waits for the answer. The exit
      status is \(ExitCode.notPermitted.rawValue) if it may not, and \(ExitCode.undecided.rawValue) if nobody
      has decided.
      """,
      """
      What a file is shows in what it begins with. Photos are JPEG, PNG, GIF, HEIF, AVIF, WebP, TIFF, BMP,
      JPEG XL and cameras' raw formats; videos are QuickTime and MPEG-4. A file can have 4 GiB.
      """,
    ],
    examples: ["insula add-photo Documents/Sunset.jpg"])

  private let files: [String]

  init(_ arguments: ParsedArguments) { files = arguments.positional }

  func run(in context: Context) throws -> ExitCode {
    let own = try AppAccess.require(
      Self.description, context, instead: "outside, the photo library is there to be copied to")
    var failures = 0
    for file in files {
      do {
        guard let path = realPath(context.absolute(file)) else {
          throw CommandFailure(.failed, Errno.ENOENT.messageAboutPath)
        }
        try own.addPhoto(path)
      } catch let failure as CommandFailure {
        // It is so for all of them.
        if [.notPermitted, .undecided].contains(failure.code) { throw failure }
        failures += 1
        context.console.note("\(file.sanitized): \(failure.message)")
      }
    }
    return failures == 0 ? .ok : .failed
  }
}
