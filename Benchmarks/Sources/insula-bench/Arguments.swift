// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The command line.
struct Arguments {
  var contenders: [Contender] = []
  /// By contender: the program, of those that are builds of insula.
  var programs: [String: String] = [:]
  /// By contender: a directory of an installed app, of those that are builds of insula.
  var apps: [String: String] = [:]
  var only: Set<String> = []
  var rounds = 7
  var seconds = 0.3
  var json: String?
  var markdown: String?
  var expectations: String?
  var scratch = "/tmp"
  var facts: [[String]] = []
  var memory: [String] = []
  var runStart: String?
  var manyViews: [String] = []
  var takeMount: [String] = []
  var inTurn = false
  var lists = false
  var worker: [String] = []

  static let usage = """
    usage: insula-bench --contender NAME=DIR[:PID]... [--program NAME=INSULA]...
                        [--app NAME=DIR]... [--only ROW,...]
                        [--in-turn] [--rounds N] [--seconds S] [--expectations FILE]
                        [--json FILE] [--markdown FILE] [--scratch DIR] [--fact LABEL=VALUE]...
           insula-bench --memory DIR:PID FILES
           insula-bench --run-start INSULA,STORE,ID [--scratch DIR]
           insula-bench --many-views INSULA,STORE,ID PID COUNT
           insula-bench --take-mount PID PATH DIR
           insula-bench --list

    The first contender is the plain directory that the others are compared to. \
    PID is the process that serves DIR.
    --run-start and --many-views are about an installed app of \
    a mounted store, the second one about its daemon PID too.
    --take-mount mounts what process PID sees at PATH on DIR.
    --in-turn takes the samples of all contenders at the same time, \
    a batch of each in turn, wherever a row can.
    --app names a directory of an installed app, with the files r0 to r99 of 4 KiB.
    """

  init(_ arguments: [String]) throws(Failure) {
    var rest = arguments[...]
    while let option = rest.popFirst() {
      func value() throws(Failure) -> String {
        guard let value = rest.popFirst() else { throw Failure("\(option) needs a value") }
        return value
      }
      switch option {
      case "--contender":
        let text = try value()
        guard let contender = Contender(text) else { throw Failure("not NAME=/DIR[:PID]: \(text)") }
        contenders.append(contender)
      case "--program":
        let halves = try value().split(separator: "=", maxSplits: 1).map(String.init)
        guard halves.count == 2, halves[1].hasPrefix("/") else { throw Failure("--program needs NAME=/PATH") }
        programs[halves[0]] = halves[1]
      case "--app":
        let halves = try value().split(separator: "=", maxSplits: 1).map(String.init)
        guard halves.count == 2, halves[1].hasPrefix("/") else { throw Failure("--app needs NAME=/DIR") }
        apps[halves[0]] = halves[1]
      case "--only": only.formUnion(try value().split(separator: ",").map(String.init))
      case "--rounds":
        guard let number = Int(try value()), number > 0 else { throw Failure("--rounds needs a number") }
        rounds = number
      case "--seconds":
        guard let number = Double(try value()), (0.001...60).contains(number) else {
          throw Failure("--seconds needs a number up to 60")
        }
        seconds = number
      case "--in-turn": inTurn = true
      case "--expectations": expectations = try value()
      case "--json": json = try value()
      case "--markdown": markdown = try value()
      case "--scratch": scratch = try value()
      case "--fact": facts.append(try value().split(separator: "=", maxSplits: 1).map(String.init))
      case "--memory": memory = [try value(), try value()]
      case "--run-start": runStart = try value()
      case "--many-views": manyViews = [try value(), try value(), try value()]
      case "--take-mount": takeMount = [try value(), try value(), try value()]
      case "--worker": worker = [try value(), try value(), try value()]
      case "--list": lists = true
      default: throw Failure("unknown option \(option)\n\(Self.usage)")
      }
    }
  }
}
