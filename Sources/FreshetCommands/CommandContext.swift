import FreshetRender

/// What a verb sees of the world: everything that a test replaces.
package struct CommandContext {
    package var environment: [String: String]
    /// The effective user's number.
    package var user: UInt32
    /// Takes data, for standard output.
    package var output: (String) -> Void
    /// Takes bytes of a pipeline's content, for standard output; false: nobody reads any more.
    package var outputBytes: (ArraySlice<UInt8>) -> Bool
    /// Standard output, to notice that its reader goes away; nil: there is nothing to notice.
    package var outputDescriptor: Int32?
    /// What kept data from being written to standard output, if anything did.
    package var outputFailure: () -> String?
    /// Takes what is said to people, for standard error.
    package var talk: (String) -> Void
    /// Whether standard output is a terminal.
    package var isTerminal: Bool
    /// That terminal's columns; nil: unknown, or none.
    package var columns: Int?
    /// The columns of the terminal that standard error is; nil: it is none.
    package var talkColumns: Int?
    /// Reads a line from the terminal that standard input is; nil: it is none.
    package var answer: (() -> String?)?
    /// The wall clock: microseconds since 1970.
    package var now: () -> Int64
    /// At an instant in microseconds since 1970: seconds east of UTC, and that offset's name.
    package var timeZone: (Int64) -> (offset: Int64, name: String)
    /// Whether something is at a path, and can be executed.
    package var exists: (String) -> Bool
    package var isExecutable: (String) -> Bool
    /// This executable's own path, if it can be known.
    package var ownPath: String?
    /// Becomes another program; returns only if that failed, with the reason.
    package var execute: (_ path: String, _ arguments: [String]) -> String
    /// Runs another program, and awaits its end.
    package var child: (_ path: String, _ arguments: [String], _ streams: ChildStreams) -> ChildResult

    package init(
        environment: [String: String], user: UInt32, output: @escaping (String) -> Void,
        outputBytes: @escaping (ArraySlice<UInt8>) -> Bool, outputDescriptor: Int32? = nil,
        outputFailure: @escaping () -> String? = { nil }, talk: @escaping (String) -> Void, isTerminal: Bool,
        columns: Int?, talkColumns: Int? = nil,
        answer: (() -> String?)? = nil, now: @escaping () -> Int64,
        timeZone: @escaping (Int64) -> (offset: Int64, name: String),
        exists: @escaping (String) -> Bool, isExecutable: @escaping (String) -> Bool, ownPath: String?,
        execute: @escaping (_ path: String, _ arguments: [String]) -> String,
        child: @escaping (_ path: String, _ arguments: [String], _ streams: ChildStreams) -> ChildResult = { _, _, _ in
            .failed("there are no programs here")
        }
    ) {
        self.environment = environment
        self.user = user
        self.output = output
        self.outputBytes = outputBytes
        self.outputDescriptor = outputDescriptor
        self.outputFailure = outputFailure
        self.talk = talk
        self.isTerminal = isTerminal
        self.columns = columns
        self.talkColumns = talkColumns
        self.answer = answer
        self.now = now
        self.timeZone = timeZone
        self.exists = exists
        self.isExecutable = isExecutable
        self.ownPath = ownPath
        self.execute = execute
        self.child = child
    }

    /// The same, whose texts are in characters that the terminal has. Bytes stay what they are.
    func speaking(_ charset: Charset) -> CommandContext {
        guard charset != .unicode else { return self }
        var context = self
        context.output = { [output] text in output(charset.text(text)) }
        context.talk = { [talk] text in talk(charset.text(text)) }
        return context
    }

    /// Where a program is, as a shell finds it; nil: nowhere.
    func program(_ name: String) -> String? {
        guard !name.contains("/") else { return isExecutable(name) ? name : nil }
        // That of the system, where the environment has none: execvp(3).
        let path = environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
        return path.split(separator: ":").map { "\($0)/\(name)" }.first(where: isExecutable)
    }
}

/// What another program's standard streams are.
package enum ChildStreams: Hashable, Sendable {
    /// This program's own: it talks with whoever is at the terminal, to whom Ctrl-C then belongs.
    case shared
    /// Nothing to read; what it writes is collected.
    case collected
}

/// What came of another program.
package enum ChildResult: Hashable, Sendable {
    /// - Parameters:
    ///   - status: as a shell has it: of one that a signal has ended, 128 and the signal's number.
    ///   - output: what it wrote, if that was collected.
    ///   - talk: the same of standard error.
    case ended(status: Int32, output: String = "", talk: String = "")
    /// It could not be run; why.
    case failed(String)
}
