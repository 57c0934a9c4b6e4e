import ControlTestSupport
import FreshetControl
import Synchronization
import Testing

@testable import FreshetCommands

/// The type of FreshetCommands, not the one of Swift Testing.
typealias CommandStatus = FreshetCommands.ExitStatus

/// The output and the effects of a command.
final class Transcript: Sendable {
    struct Contents {
        var output = ""
        var printError = ""
        var executed: [String] = []
    }
    private let contents = Mutex(Contents())

    var output: String { contents.withLock { $0.output } }
    var printError: String { contents.withLock { $0.printError } }
    var executed: [String] { contents.withLock { $0.executed } }

    /// 2026-11-21 02:39:23 UTC.
    static let now: Int64 = 1_795_228_763_000_000

    func context(
        environment: [String: String] = [:], user: UInt32 = 1_000, columns: Int? = nil,
        existing: Set<String> = [], executable: Set<String> = [], ownPath: String? = nil,
        takesBytes: @escaping @Sendable (String) -> Bool = { _ in true }
    ) -> CommandContext {
        CommandContext(
            environment: environment, user: user,
            output: { text in self.contents.withLock { $0.output += text } },
            outputBytes: { bytes in
                self.contents.withLock { $0.output += String(decoding: bytes, as: UTF8.self) }
                return takesBytes(self.output)
            },
            printError: { text in self.contents.withLock { $0.printError += text } },
            isTerminal: columns != nil, columns: columns, now: { Self.now }, timeZone: { _ in (0, "UTC") },
            exists: existing.contains, isExecutable: executable.contains, ownPath: ownPath,
            execute: { path, arguments in
                self.contents.withLock { $0.executed = [path] + arguments }
                return "Exec format error"
            })
    }
}

/// Runs a command line as a shell would split it at spaces.
func freshetctl(_ line: String, _ transcript: Transcript, socket: String? = nil) -> CommandStatus {
    freshetctl(line.split(separator: " ").map(String.init), transcript, socket: socket)
}

func freshetctl(_ arguments: [String], _ transcript: Transcript, socket: String? = nil) -> CommandStatus {
    let environment = socket.map { ["FRESHET_SOCKET": $0] } ?? [:]
    return Freshetctl.run(arguments, transcript.context(environment: environment))
}

/// Runs a command line against a daemon, and compares its output, its status, and its
/// requests if they are given.
func expect(
    _ line: String, of service: ScriptedService, rights: ControlRights = ownRights, status: CommandStatus = .success,
    output: String = "", printError: String = "", asked: [String]? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) async throws {
    let transcript = Transcript()
    try await withControlServer(service, rights: rights) { path in
        #expect(freshetctl(line, transcript, socket: path) == status, sourceLocation: sourceLocation)
    }
    #expect(transcript.output == output, sourceLocation: sourceLocation)
    #expect(transcript.printError == printError, sourceLocation: sourceLocation)
    if let asked { #expect(service.asked == asked, sourceLocation: sourceLocation) }
}

/// A suite whose tests run commands against the suite's own daemon.
protocol VerbSuite {
    func service() -> ScriptedService
    /// The expected requests of a command if a test gives none; nil if they are not compared.
    var expectedRequests: [String]? { get }
}

extension VerbSuite {
    var expectedRequests: [String]? { [] }

    /// Runs a command line against a daemon, by default that of the suite, and compares.
    func check(
        _ line: String, _ service: ScriptedService? = nil, rights: ControlRights = ownRights,
        status: CommandStatus = .success, output: String = "", printError: String = "", asked: [String]? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await expect(
            line, of: service ?? self.service(), rights: rights, status: status, output: output, printError: printError,
            asked: asked ?? expectedRequests, sourceLocation: sourceLocation)
    }
}
