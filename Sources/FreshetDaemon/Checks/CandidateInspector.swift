import FreshetEmitters
import FreshetEventLoop
import FreshetPipelines
import FreshetSystemd
import Glibc
import Logging
import Synchronization

/// The engine's ``CandidateInspecting`` made real: has the program of `check.exec` look at a candidate, as hooks are run
/// (``TrustedPrograms``).
///
/// A candidate that is on disk is looked at there; of one in memory the program is given a file for the time of its run.
final class CandidateInspector: CandidateInspecting {
    private let programs: TrustedPrograms
    private let files: ProgramInputFiles
    private let say: @Sendable (TrustedPrograms.OutputHandling, _ pipeline: String, _ command: [String]) -> Void
    private let lastNumber = Mutex<UInt64>(0)

    /// - Parameters:
    ///   - files: those for candidates in memory.
    ///   - say: is told what programs write, on the loop's thread.
    init(
        _ programs: TrustedPrograms, _ files: ProgramInputFiles,
        say: @escaping @Sendable (TrustedPrograms.OutputHandling, _ pipeline: String, _ command: [String]) -> Void
    ) {
        self.programs = programs
        self.files = files
        self.say = say
    }

    func inspect(
        _ candidate: FetchedBody, of definition: PipelineDefinition, by rule: InspectionRule
    ) async throws(FetchError) {
        switch candidate {
        case .bytes(let bytes):
            let number = lastNumber.withLock { number in
                number += 1
                return number
            }
            try await files.hand(bytes, number: number, on: programs.workers) { (path) throws(FetchError) in
                try await inspect(path, definition.name, by: rule)
            }
        case .kept(let kept):
            guard let path = kept.pending.path else {
                throw .failed(RunFailure(.local, "the candidate is in no file that a program could look at"))
            }
            let before = try await mark(of: path)
            try await inspect(path, definition.name, by: rule)
            guard try await mark(of: path) == before, try await isIntact(kept) else {
                throw .failed(
                    RunFailure(
                        .local, "\(program(rule)) has changed the candidate, which it may only read"))
            }
        }
    }

    private func inspect(_ path: String, _ pipeline: String, by rule: InspectionRule) async throws(FetchError) {
        let first = Box()
        let status = try await programs.ask(
            rule.command, ["FRESHET_CANDIDATE": path, "FRESHET_PIPELINE": pipeline], timeout: rule.timeout
        ) { [say] saying in
            if case .line(let line) = saying { first.note(line) }
            say(saying, pipeline, rule.command)
        }
        guard status != 0 else { return }
        let words = first.line.map { ": \(PlainText.escaping($0))" } ?? ""
        throw .failed(
            RunFailure(.content, "\(program(rule)) refuses it, with exit status \(status)\(words)"))
    }

    private func program(_ rule: InspectionRule) -> String { rule.command.first ?? "" }

    /// Times alone do not tell: what is written within one tick of the kernel's clock, or through a memory map, may leave
    /// them as they were.
    private func isIntact(_ kept: StoredBody) async throws(FetchError) -> Bool {
        do throws(RunFailure) {
            return try await kept.pending.isIntact()
        } catch {
            throw .failed(error)
        }
    }

    /// What changes when somebody puts another file into the place of one, and mostly when somebody writes to it.
    private struct Mark: Hashable, Sendable {
        var device: UInt
        var inode: UInt
        var size: Int
        /// Of its content or its inode.
        var changed: [Int]
    }

    private func mark(of path: String) async throws(FetchError) -> Mark {
        try await programs.workers.run("candidate") { () throws(FetchError) in
            var status = stat()
            guard lstat(path, &status) == 0 else {
                throw .failed(
                    RunFailure(.local, "the candidate cannot be looked at: \(String(cString: strerror(errno)))"))
            }
            return Mark(
                device: status.st_dev, inode: status.st_ino, size: status.st_size,
                changed: [status.st_ctim.tv_sec, status.st_ctim.tv_nsec, status.st_mtim.tv_sec, status.st_mtim.tv_nsec])
        }
    }

    /// The first line that a program wrote.
    private final class Box: Sendable {
        private let noted = Mutex<String?>(nil)
        var line: String? { noted.withLock { $0 } }
        func note(_ line: String) { noted.withLock { $0 = $0 ?? line } }
    }
}

extension TrustedPrograms.OutputHandling {
    /// Has the journal tell it, as a check's.
    func tell(of command: [String], of pipeline: String, _ news: LogLimiter, _ log: Logger) {
        let fields: [JournalField: Logger.MetadataValue] = [
            .pipeline: .string(pipeline), .check: .string(Redaction.text(command.joined(separator: " "))),
        ]
        switch self {
        case .line(let line): news.say(.checkSaid, fields.merging([.output: .string(line)]) { $1 })
        case .leftOut(let count):
            log.say(
                .checkSaid, text: "the check says {count} lines more, which are left out",
                fields.merging([.count: .stringConvertible(count)]) { $1 })
        }
    }
}
