// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
@testable internal import Daemon
internal import LinuxIO
internal import Policy
internal import Store
internal import Testing

/// What goes over the control socket stays what it was: commands and daemons of two versions meet after every
/// update.
@Suite struct ControlWireTests {
  private static let editor = "com.example.editor"
  private static let delivery = #"{"copy":"c","name":"n","home":"h","identifier":"a.b"}"#
  private static let group = #"{"copy":"c","home":"h","identifier":"a.b","kind":"group"}"#
  private static let new = #"{"action":"install","bundle":"E.app","allowsDowngrade":false,"keepsData":false}"#
  private static let grant =
    #"{"action":"grant","identifier":"a.b","path":"x","inode":3,"access":"read-only"}"#
  private static let plan =
    #"{"identifier":"a.b","mountPoint":"/i","executable":"e","data":"d","hasNetwork":true}"#

  private func decoded<Message: Decodable>(_ type: Message.Type, _ text: String) throws -> Message {
    try ControlLine.decode(type, text.utf8)
  }

  private func text(_ message: some Encodable) -> String {
    String(decoding: ControlLine.encode(message).dropLast(), as: UTF8.self)
  }

  @Test(
    arguments: [
      #"{"verb":"status"}"#, #"{"verb":"unmount","lazily":true}"#, #"{"verb":"unmount"}"#,
      #"{"verb":"apps"}"#, #"{"verb":"apps","user":7}"#, #"{"verb":"apps","after":0}"#,
      #"{"verb":"files","files":{"mountPoint":"/a","languages":"de:en"}}"#,
      #"{"verb":"app","identifier":"com.example.editor"}"#,
      #"{"verb":"path","identifier":"com.example.editor","place":"group:org.g","user":1}"#,
      #"{"verb":"grants"}"#, #"{"verb":"grants","identifier":null,"after":9}"#,
      #"{"verb":"run","identifier":"com.example.editor","user":1000}"#, #"{"verb":"running"}"#,
      #"{"verb":"end","identifier":"com.example.editor","signal":64}"#, #"{"verb":"pass"}"#,
      #"{"verb":"ended"}"#, #"{"verb":"ended","status":255,"limit":"memory"}"#,
      #"{"verb":"grant","grant":{"action":"revoke"}}"#,
      #"{"verb":"log","query":{"after":7,"deniedOnly":true,"app":"a.b"}}"#,
      #"{"verb":"grant","grant":\#(grant)}"#,
      #"{"verb":"order","order":\#(new)}"#,
      #"{"verb":"order","order":{"action":"update","bundle":"E.app","home":"anna","allowsDowngrade":true}}"#,
      #"{"verb":"order","order":{"action":"update","bundle":"E.app","whenClosed":true}}"#,
      #"{"verb":"order","order":{"action":"cancelUpdate","identifier":"a.b","home":"anna"}}"#,
      #"{"verb":"order","order":{"action":"uninstall","identifier":"a.b","home":"anna","keepsData":true}}"#,
      #"{"verb":"order","order":{"action":"updateSystem","bundle":"New"}}"#,
      #"{"verb":"order","order":{"action":"rollbackSystem"}}"#,
      #"{"verb":"order","order":{"action":"assign","team":"TEAM1","root":[1,255]}}"#,
      #"{"verb":"order","order":{"action":"deliver","delivery":\#(delivery)}}"#,
      #"{"verb":"order","order":{"action":"replaceData","newData":\#(delivery)}}"#,
      #"{"verb":"order","order":{"action":"replaceData","newData":\#(group)}}"#,
    ])
  func requestsAreReadAndWritten(line: String) throws {
    let request = try decoded(ControlRequest.self, line)
    #expect(try decoded(ControlRequest.self, text(request)) == request)
  }

  @Test func requestsMeanWhatTheySay() throws {
    let editor = try #require(AppIdentifier(Self.editor))
    let end = #"{"verb":"end","identifier":"com.example.editor","user":5,"signal":9,"lazily":true}"#
    #expect(try decoded(ControlRequest.self, end) == .end(editor, user: 5, signal: 9))
    let update =
      #"{"verb":"order","order":{"action":"update","bundle":"E.app","home":"anna","keepsData":true}}"#
    #expect(
      try decoded(ControlRequest.self, update)
        == .change(.update(named: "E.app", for: .user("anna"), allowsDowngrade: false, whenClosed: false)))
    // What an earlier daemon wants to read.
    let words = text(ControlRequest.change(.rollbackSystem))
    for field in [
      #""verb":"order""#, #""action":"rollbackSystem""#, #""allowsDowngrade":false"#, #""keepsData":false"#,
    ] { #expect(words.contains(field), "\(words)") }
  }

  private static let missing = ControlFailure("a field of the request is missing", .errno(.EINVAL))
  private static let unknown = ControlFailure("this version of insula does not know this request")

  @Test(
    arguments: [
      (#"{"verb":"app"}"#, missing), (#"{"verb":"app","identifier":"../x"}"#, missing),
      (#"{"verb":"end","identifier":"a.b","signal":0}"#, missing),
      (#"{"verb":"end","identifier":"a.b","signal":65}"#, missing),
      (#"{"verb":"ended","status":256}"#, missing), (#"{"verb":"ended","status":-1}"#, missing),
      (#"{"verb":"ended","status":4294967296}"#, unknown), (#"{"verb":"ended","limit":7}"#, unknown),
      (#"{"verb":"path","identifier":"a.b","place":"nowhere"}"#, missing), (#"{"verb":"grant"}"#, missing),
      (#"{"verb":"order","order":{"action":"install"}}"#, missing),
      (#"{"verb":"order","order":{"action":"deliver"}}"#, missing),
      (#"{"verb":"order","order":{"action":"format"}}"#, unknown), (#"{"verb":"format"}"#, unknown),
      (#"{"verb":"end","identifier":"a.b","signal":4294967296}"#, unknown),
      (#"{"verb":"apps","user":-1}"#, unknown), (#"{"verb":"apps","user":"root"}"#, unknown),
      (#"{"verb":"unmount","lazily":1}"#, unknown), ("[1]", unknown), ("nonsense", unknown),
      (String(repeating: "[", count: 16384), unknown),
      (String(repeating: #"{"order":"#, count: 1800), unknown),
    ])
  func whatIsNoRequestIsRefused(line: String, failure: ControlFailure) throws {
    let error = #expect(throws: (any Error).self) { try decoded(ControlRequest.self, line) }
    #expect(error.map { ControlFailure(unreadable: $0) } == failure)
  }

  private static let app =
    #"{"identifier":"a.b","name":"E","executable":"E","version":"1","shortVersion":"","team":"T","#
    + #""path":"Applications/E.app","seal":[1],"installed":2,"groups":[],"clouds":[]}"#
  private static let waiting =
    #"{"name":"x","app":\#(app),"before":\#(app),"allowsDowngrade":false,"since":3,"#
    + #""requester":{"uid":1,"gid":2,"groups":[3],"mayHaveLeftGroups":false}}"#
  private static let run = #"{"identifier":"a.b","user":1,"pid":2,"since":3,"bundle":"Applications/E.app"}"#

  /// The case that each is, and what an earlier daemon says.
  @Test(
    arguments: [
      (".done", #"{"ok":true}"#), ("awaitsDescriptor", #"{"ok":true,"awaitsDescriptor":true}"#),
      ("progress", #"{"ok":true,"progress":{"phase":"copying","done":1,"total":2}}"#),
      (".installed", #"{"ok":true,"app":\#(app)}"#),
      (".updated", #"{"ok":true,"app":\#(app),"before":\#(app)}"#),
      (".waiting", #"{"ok":true,"waiting":\#(waiting)}"#),
      (".uninstalled", #"{"ok":true,"before":\#(app),"left":[{"path":"x","reason":"y"}]}"#),
      (".assigned", #"{"ok":true,"team":"TEAM1","formerRoot":[1,255]}"#),
      (".assigned", #"{"ok":true,"team":"TEAM1"}"#),
      (".uninstalled(nil", #"{"ok":true,"left":[]}"#), (".apps", #"{"ok":true,"apps":[]}"#),
      (".path", #"{"ok":true,"path":"x"}"#), (".grants", #"{"ok":true,"grants":[],"next":7}"#),
      (".running", #"{"ok":true,"running":[\#(run)]}"#),
      (".system", #"{"ok":true,"system":{"current":{"root":[],"version":"","team":"","installed":0}}}"#),
      (
        ".launch",
        #"{"ok":true,"launch":\#(plan)}"#
      ),
    ])
  func messagesAreReadAndWritten(name: String, line: String) throws {
    let message = try decoded(ControlMessage.self, line)
    #expect("\(message)".contains(name), "\(message)")
    #expect(try decoded(ControlMessage.self, text(message)) == message)
  }

  @Test(
    arguments: [
      (#"{"ok":false,"message":"x"}"#, .unspecified),
      (#"{"ok":false,"message":"x","errno":1}"#, .errno(.EPERM)),
      (#"{"ok":false,"message":"x","failure":"noApp"}"#, .store(.noApp)),
      (#"{"ok":false,"message":"x","failure":"crowded","errno":16}"#, .crowded),
      (#"{"ok":false,"message":"x","finding":"notSigned"}"#, .unspecified),
      (#"{"ok":false,"message":"x","finding":"unsigned"}"#, .finding(.unsigned)),
      (#"{"ok":false,"message":"x","failure":"of a later version","errno":13}"#, .errno(.EACCES)),
    ] as [(String, ControlFailure.Cause)])
  func failuresAreReadAndWritten(line: String, cause: ControlFailure.Cause) throws {
    let message = try decoded(ControlMessage.self, line)
    #expect(message == .reply(.failure(ControlFailure("x", cause))))
    #expect(try decoded(ControlMessage.self, text(message)) == message)
  }

  @Test func appsThatRunAreToldWithTheRefusal() throws {
    let line = #"{"ok":false,"message":"apps run:","errno":16,"running":[\#(Self.run)]}"#
    let message = try decoded(ControlMessage.self, line)
    guard case .reply(.failure(let failure)) = message, case .appsRun(let apps) = failure.cause else {
      Issue.record("\(message)")
      return
    }
    #expect(apps.map(\.pid) == [2])
    #expect(text(message).contains(#""errno":16"#))
  }
}
