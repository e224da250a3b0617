// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// The choice of files at a terminal, in a directory that passes for a tree.
@Suite struct PanelTreeTests {
  private let temporary: TemporaryDirectory
  private let tree: PanelTree

  init() throws {
    temporary = try TemporaryDirectory()
    for name in [
      "tree", "tree/Users", "tree/Users/anna", "tree/Users/anna/Documents", "tree/Users/anna/Music",
    ] {
      try temporary.makeDirectory(name)
    }
    for name in ["Letter.txt", "Letter.md", "Picture.PNG", ".hidden"] {
      try temporary.write("text", to: "tree/Users/anna/\(name)")
    }
    try temporary.write("x", to: "outside")
    symlink("Letter.txt", temporary.appending("tree/Users/anna/link"))
    symlink("../../../outside", temporary.appending("tree/Users/anna/way-out"))
    symlink(".", temporary.appending("tree/Users/anna/folder"))
    tree = try #require(PanelTree(at: temporary.appending("tree"), for: ProcessID.user))
  }

  private func refusal(_ typed: String, _ request: PanelRequest) -> String {
    do throws(PanelTree.Refusal) {
      return "chosen: \(try tree.choose(typed, request).path)"
    } catch {
      switch error {
      case .sentence(let sentence): return sentence
      case .isThere(let name): return "there: \(name)"
      }
    }
  }

  @Test func homeIsWhereItBegins() {
    #expect(tree.home == "Users/anna" && tree.root.hasSuffix("/tree"))
    for typed in [
      "Letter.txt", "~/Letter.txt", "/Users/anna/Letter.txt", "\(tree.root)/Users/anna/Letter.txt",
      "Documents/../Letter.txt", "./Letter.txt",
    ] {
      #expect(refusal(typed, PanelRequest(.file)) == "chosen: Users/anna/Letter.txt", "\(typed)")
    }
  }

  @Test(
    arguments: [
      ("nowhere", "'nowhere' can't be used: No such file or directory."),
      ("Documents", "'Documents' is a folder; choose a file in it."),
      ("way-out", "/outside'; choose that."), ("link", "/tree/Users/anna/Letter.txt'; choose that."),
      ("folder/Letter.txt", "leads to '"),
      ("../../../outside", "'../../../outside' is not in the tree"),
      ("x\u{1b}[2J", "'x?[2J' can't be used"), ("a\u{0}b", "is not a path"),
    ])
  func whatIsNotWantedIsExplained(typed: String, sentence: String) {
    #expect(refusal(typed, PanelRequest(.file)).contains(sentence))
  }

  @Test func typesAreRequired() {
    let texts = PanelRequest(.file, types: [".txt", "net.daringfireball.markdown"])
    #expect(refusal("Letter.md", texts).hasPrefix("chosen"))
    #expect(
      refusal("Picture.PNG", texts)
        == "'Picture.PNG' is not of a type that the app wants; it must end in .txt, .md, .markdown, .mkd.")
    #expect(refusal("Picture.PNG", PanelRequest(.file, types: ["public.image"])).hasPrefix("chosen"))
    // Nobody here knows which files are of that type.
    #expect(
      refusal("Picture.PNG", PanelRequest(.file, types: ["com.example.note", ".txt"])).hasPrefix("chosen"))
  }

  @Test func foldersAreChosen() {
    #expect(refusal("Documents", PanelRequest(.folder)) == "chosen: Users/anna/Documents")
    #expect(refusal("Letter.txt", PanelRequest(.folder)) == "'Letter.txt' is not a folder.")
    #expect(refusal("/", PanelRequest(.folder)).contains("is the whole tree"))
  }

  @Test func fileToSaveIsMade() throws {
    let save = PanelRequest(.save, name: "New.txt", types: [".txt"])
    let choice = try tree.choose("Documents/New.txt", save)
    #expect(choice.path == "Users/anna/Documents/New.txt" && choice.isNew)
    let status = try FD.cwd.status(of: "\(tree.root)/\(choice.path)")
    #expect(UInt64(status.st_ino) == choice.inode)
    #expect(refusal("Documents/New.txt", save) == "there: New.txt")
    tree.undo(choice)
    #expect(!FD.cwd.has("\(tree.root)/\(choice.path)"))
    // What something was done to, stays.
    let again = try tree.choose("Documents/New.txt", save)
    try temporary.write("text", to: "tree/\(again.path)")
    tree.undo(again)
    #expect(FD.cwd.has("\(tree.root)/\(again.path)"))
    let replaced = try tree.choose("Letter.txt", save, replacing: true)
    #expect(!replaced.isNew)
    tree.undo(replaced)
    #expect(temporary.text(of: "tree/Users/anna/Letter.txt") == "text")
  }

  @Test(
    arguments: [
      ("Documents", "there already, and not a file"), ("nowhere/New.txt", "can't be used"), ("", "no name"),
      ("New.png", "must end in .txt"), ("../../../New.txt", "is not in the tree"), ("way-out", "must end in"),
    ])
  func fileIsNotSavedEverywhere(typed: String, why: String) throws {
    let before = try temporary.names()
    #expect(refusal(typed, PanelRequest(.save, types: typed == "Documents" ? [] : [".txt"])).contains(why))
    #expect(try temporary.names() == before)
  }

  @Test(
    arguments: [
      ("L", "Letter.", ["Letter.md", "Letter.txt"]), ("Letter.t", "Letter.txt", ["Letter.txt"]),
      ("~", "~/", []), ("~/Doc", "~/Documents/", ["Documents/"]), ("/Us", "/Users/", ["Users/"]),
      (".", ".hidden", [".hidden"]),
    ])
  func pathsAreCompleted(typed: String, text: String, names: [String]) {
    #expect(tree.complete(typed, PanelRequest(.file)) == .init(text: text, names: names))
  }

  @Test func completionOffersWhatIsWanted() {
    #expect(tree.complete("", PanelRequest(.folder))?.names == ["Documents/", "Music/"])
    #expect(
      tree.complete("", PanelRequest(.file, types: [".md"]))?.names == ["Documents/", "Letter.md", "Music/"])
    #expect(tree.complete("nothing", PanelRequest(.file)) == nil)
    #expect(tree.complete("nowhere/x", PanelRequest(.file)) == nil)
  }

  // MARK: At a terminal

  private func dialog(_ request: PanelRequest) -> Screen {
    Screen(AgentQuestion(asking: FakeTasks.panel(1, request)), tree: tree)
  }

  @Test func pathIsTypedAndCompleted() throws {
    let dialog = dialog(PanelRequest(.file))
    #expect(dialog.takeShown().contains("\"Note\" asks you for a file.\r\n"))
    #expect(dialog.take(Array("nowhere\r".utf8)) == .goesOn)
    #expect(dialog.takeShown().contains("can't be used: No such file"))
    #expect(dialog.take(Array("L\t\t".utf8)) == .goesOn)
    #expect(dialog.takeShown().contains("Letter.md   Letter.txt"))
    let inode = UInt64(try FD.cwd.status(of: "\(tree.root)/Users/anna/Letter.txt").st_ino)
    let answer = AgentAnswer.chosen(path: "Users/anna/Letter.txt", inode: inode)
    #expect(dialog.take(Array("t\t\r".utf8)) == .answered(answer))
    // What the daemon does not grant is asked for again.
    #expect(!dialog.end(.refused("not that"), of: answer))
    #expect(dialog.takeShown().contains("not that\r\n"))
    #expect(dialog.take([0x0d]) == .answered(.dismiss))
  }

  @Test func replacingIsAskedFor() throws {
    let dialog = dialog(PanelRequest(.save, name: "Letter.txt"))
    #expect(dialog.takeShown().hasSuffix("Save as: Letter.txt"))
    #expect(dialog.take([0x0d]) == .goesOn)
    #expect(dialog.takeShown().contains("'Letter.txt' is there already.\r\n\r\u{1b}[KReplace it? [y/n] "))
    #expect(dialog.take(Array("n\r".utf8)) == .goesOn)
    #expect(dialog.take(Array("Letter.txt\r".utf8)) == .goesOn)
    guard case .answered(.chosen(let path, _)) = dialog.take(Array("y\r".utf8)) else {
      Issue.record("not replaced")
      return
    }
    #expect(path == "Users/anna/Letter.txt")
    #expect(dialog.end(.tooLate, of: .chosen(path: path, inode: 1)))
    #expect(temporary.text(of: "tree/Users/anna/Letter.txt") == "text")
  }

  /// A file's name is a stranger's, too.
  @Test func namesOfFilesGiveNoOrders() throws {
    try temporary.write("", to: "tree/Users/anna/Evil\u{1b}[2J\rx")
    try temporary.write("", to: "tree/Users/anna/Evil\u{202e}y")
    let dialog = dialog(PanelRequest(.file))
    _ = dialog.take(Array("Ev\t\t\u{1b}".utf8))
    let bare = dialog.takeShown().replacing("\r\u{1b}[K", with: "")
    #expect(bare.contains("Evil?[2J?x") && bare.contains("Evil?y"))
    #expect(bare.unicodeScalars.allSatisfy { $0.isPrintable || $0 == "\r" || $0 == "\n" })
  }
}
