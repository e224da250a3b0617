// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

import Glibc

/// The archives that the program rows unpack: made once a run, outside of all contenders, the same in every
/// run.
struct Samples: Sendable {
  /// 20,000 small text files in 400 directories.
  let treeArchive: String
  /// C sources and a makefile.
  let sourceArchive: String

  private static let directories = 400
  private static let filesPerDirectory = 50
  private static let sources = 60

  init(scratch: String) {
    treeArchive = scratch + "/tree.tar"
    sourceArchive = scratch + "/source.tar"
  }

  /// Writes the archives unless they are there.
  func make() throws(Failure) {
    if !exists(treeArchive) { try pack(treeArchive, name: "tree", fill: Self.fillTree) }
    if !exists(sourceArchive) { try pack(sourceArchive, name: "source", fill: Self.fillSource) }
  }

  private func pack(
    _ archive: String, name: String, fill: (String) throws(Failure) -> Void
  ) throws(Failure) {
    let top = archive + ".d"
    try makeDirectory(top)
    try makeDirectory(top + "/" + name)
    try fill(top + "/" + name)
    try Child.run([
      "tar", "--sort=name", "--mtime=@1700000000", "--owner=0", "--group=0", "--numeric-owner", "-C", top,
      "-cf", archive, name,
    ])
    try Child.run(["rm", "-rf", top])
  }

  private static func fillTree(_ top: String) throws(Failure) {
    var dice = Dice(seed: 20_000)
    let letters = Array("abcdefghijklmnopqrstuvwxyz      \n".utf8)
    for directory in 0..<directories {
      let parent = "\(top)/part\(directory / 20)"
      let path = "\(parent)/unit\(directory % 20)"
      try makeDirectory(parent)
      try makeDirectory(path)
      for file in 0..<filesPerDirectory {
        let size = Int.random(in: 200...4000, using: &dice)
        let text = (0..<size).map { _ in letters[Int.random(in: 0..<letters.count, using: &dice)] }
        try writeFile("\(path)/file\(file).txt", text)
      }
    }
  }

  private static func fillSource(_ top: String) throws(Failure) {
    var objects = ""
    for index in 0..<sources {
      var text = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include \"all.h\"\n"
      for function in 0..<20 {
        text += "int f\(index)_\(function)(int a, const char *s) {\n"
        text += "  int t = a; for (size_t i = 0; i < strlen(s); i++) t = t * \(function + 3) + s[i];\n"
        text += "  if (t == \(index)) printf(\"%d %s\\n\", t, s);\n  return t ^ \(index);\n}\n"
      }
      try writeFile("\(top)/s\(index).c", Array(text.utf8))
      objects += " s\(index).o"
    }
    var header = "#pragma once\n"
    var body = "#include \"all.h\"\nint main(void) {\n  int t = 0;\n"
    for index in 0..<sources {
      for function in 0..<20 { header += "int f\(index)_\(function)(int, const char *);\n" }
      body += "  t += f\(index)_0(t, \"x\");\n"
    }
    body += "  return t == 1;\n}\n"
    try writeFile("\(top)/all.h", Array(header.utf8))
    try writeFile("\(top)/main.c", Array(body.utf8))
    let make = """
      CC = cc
      CFLAGS = -O1
      OBJECTS =\(objects) main.o
      program: $(OBJECTS)
      \t$(CC) -o $@ $(OBJECTS)
      $(OBJECTS): all.h
      clean:
      \trm -f program $(OBJECTS)

      """
    try writeFile("\(top)/Makefile", Array(make.utf8))
  }
}
