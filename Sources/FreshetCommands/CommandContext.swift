import FreshetRender

/// Everything outside the program that a verb uses; tests replace it.
package struct CommandContext {
    package var environment: [String: String]
    /// The effective user ID.
    package var user: UInt32
    /// Writes text to standard output.
    package var output: (String) -> Void
    /// Writes bytes to standard output; false if they cannot be written, for example because the reader has closed the
    /// pipe.
    package var outputBytes: (ArraySlice<UInt8>) -> Bool
    /// The descriptor of standard output, to notice that its reader closes it; nil in tests.
    package var outputDescriptor: Int32?
    /// The reason for which standard output could not be written; nil if all was written.
    package var outputFailure: () -> String?
    /// Writes messages to standard error. ``Freshetctl/run(_:_:)`` makes their lines harmless for terminals: messages
    /// quote arguments, paths and answers.
    package var printError: (String) -> Void
    /// Writes to the terminal of standard error, with control sequences: for ``ProgressLine``.
    var drawError: (String) -> Void
    /// Whether standard output is a terminal.
    package var isTerminal: Bool
    /// The width of that terminal; nil if it is unknown, or if standard output is not a terminal.
    package var columns: Int?
    /// The width of the terminal of standard error; nil if standard error is not a terminal.
    package var errorColumns: Int?
    /// Reads a line from the terminal of standard input; nil if standard input is not a terminal.
    package var answer: (() -> String?)?
    /// The wall clock: microseconds since 1970.
    package var now: () -> Int64
    /// The time zone at an instant (microseconds since 1970): seconds east of UTC, and its name.
    package var timeZone: (Int64) -> (offset: Int64, name: String)
    /// Whether a path exists.
    package var exists: (String) -> Bool
    /// Whether a path can be executed.
    package var isExecutable: (String) -> Bool
    /// The path of this executable; nil if it is unknown.
    package var ownPath: String?
    /// Replaces this process with another program (execv(3)); returns only the reason of a failure.
    package var execute: (_ path: String, _ arguments: [String]) -> String
    /// Runs another program and waits for its end.
    package var child: (_ path: String, _ arguments: [String], _ streams: ChildStreams) -> ChildResult

    package init(
        environment: [String: String], user: UInt32, output: @escaping (String) -> Void,
        outputBytes: @escaping (ArraySlice<UInt8>) -> Bool, outputDescriptor: Int32? = nil,
        outputFailure: @escaping () -> String? = { nil }, printError: @escaping (String) -> Void, isTerminal: Bool,
        columns: Int?, errorColumns: Int? = nil,
        answer: (() -> String?)? = nil, now: @escaping () -> Int64,
        timeZone: @escaping (Int64) -> (offset: Int64, name: String),
        exists: @escaping (String) -> Bool, isExecutable: @escaping (String) -> Bool, ownPath: String?,
        execute: @escaping (_ path: String, _ arguments: [String]) -> String,
        child: @escaping (_ path: String, _ arguments: [String], _ streams: ChildStreams) -> ChildResult = { _, _, _ in
            .failed("no programs can be run here")
        }
    ) {
        self.environment = environment
        self.user = user
        self.output = output
        self.outputBytes = outputBytes
        self.outputDescriptor = outputDescriptor
        self.outputFailure = outputFailure
        self.printError = printError
        drawError = printError
        self.isTerminal = isTerminal
        self.columns = columns
        self.errorColumns = errorColumns
        self.answer = answer
        self.now = now
        self.timeZone = timeZone
        self.exists = exists
        self.isExecutable = isExecutable
        self.ownPath = ownPath
        self.execute = execute
        self.child = child
    }

    /// The same context, which converts text to the characters of the terminal. Bytes stay unchanged.
    func inCharset(_ charset: Charset) -> CommandContext {
        guard charset != .unicode else { return self }
        var context = self
        context.output = { [output] text in output(charset.text(text)) }
        context.printError = { [printError] text in printError(charset.text(text)) }
        return context
    }

    /// The same context, whose messages on standard error have no effect on a terminal, except for line feeds.
    var withHarmlessErrors: CommandContext {
        var context = self
        context.drawError = printError
        context.printError = { [printError] text in printError(DisplayText.harmlessLines(text)) }
        return context
    }

    /// The path of a program, as a shell finds it; nil if there is none.
    func program(_ name: String) -> String? {
        guard !name.contains("/") else { return isExecutable(name) ? name : nil }
        // Without PATH, the default of execvp(3).
        let path = environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
        return path.split(separator: ":").map { "\($0)/\(name)" }.first(where: isExecutable)
    }
}

/// The standard streams of a child.
package enum ChildStreams: Hashable, Sendable {
    /// Those of this program: the child uses the terminal, and gets its Ctrl-C.
    case shared
    /// An empty input; the output is collected.
    case collected
}

/// The end of a child.
package enum ChildResult: Hashable, Sendable {
    /// - Parameters:
    ///   - status: as in a shell: after a signal, 128 plus its number.
    ///   - output: the collected standard output.
    ///   - errorOutput: the collected standard error.
    case ended(status: Int32, output: String = "", errorOutput: String = "")
    /// The reason for which the program could not be run.
    case failed(String)
}
