// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy

// An app may add photos to its user's library without seeing what is there. It learns nothing but that its
// photo was added: no name, and nothing that a name or a file of its user's would change.

extension ConsentService {
  /// An app wants to add a photo; where its user has not decided yet, they are asked first.
  func addPhoto(_ photo: AddedPhoto, _ running: RunningView) -> AppAnswer {
    guard photo.isReasonable else {
      return .reply(.failure(ControlFailure("the name of the file, or the token, is too long", .EINVAL)))
    }
    return withConsent(to: .photosAdd, running) { [self] in
      let call = self.call(of: running.number)
      perform(
        .add(AddingTask(photo, data: running.launch.data, home: running.launch.home)), running, call)
      return .waits(for: .view(running.number)) { call.answer }
    }
  }

  /// Lets a photo be added that is copied, directly before it gets its name.
  ///
  /// If that was decided otherwise meanwhile, the app is told so, and the copy is thrown away.
  func confirm(_ number: Int64, by reader: AgentPresence) -> ControlReply {
    guard readings.isAwaited(number, by: reader.number),
      let running = views.all(ended: true).first(where: { $0.number == reader.view })
    else { return .failure(Self.tooLate) }
    guard let refusal = refusalOfAdding(running, adds: true) else { return .done }
    readings.answered(number, by: reader.number)?.give(.failure(refusal))
    return .failure(Self.tooLate)
  }

  /// What a process is not to add that is about to be given this; nil for nothing.
  ///
  /// What was decided since the app has asked counts.
  func refusalOfAdding(_ running: RunningView, adds: Bool) -> ControlFailure? {
    guard has(.photosAdd, running) else { return refusal(.photosAdd, running) }
    return adds ? nil : ControlFailure(Self.noReader, .EIO)
  }
}
