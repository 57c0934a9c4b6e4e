import FreshetEmitters
import FreshetEventLoop
import FreshetPipelines
import FreshetSystemd
import Glibc
import Logging
import Synchronization

/// Implements the engine's ``CandidateInspecting``: runs the program of `check.exec` on a candidate, in the same way as
/// hooks (``TrustedPrograms``).
///
/// The program reads a candidate on disk in place. A candidate in memory is written to a file for the time of the run.
final class CandidateInspector: CandidateInspecting {
    private let programs: TrustedPrograms
    private let files: ProgramInputFiles
    private let log: @Sendable (TrustedPrograms.OutputHandling, _ pipeline: String, _ command: [String]) -> Void
    private let lastNumber = Mutex<UInt64>(0)

    /// - Parameters:
    ///   - files: the files for candidates in memory.
    ///   - log: called on the loop's thread with the output of programs.
    init(
        _ programs: TrustedPrograms, _ files: ProgramInputFiles,
        log: @escaping @Sendable (TrustedPrograms.OutputHandling, _ pipeline: String, _ command: [String]) -> Void
    ) {
        self.programs = programs
        self.files = files
        self.log = log
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
            try await files.withFile(bytes, number: number, on: programs.workers) { (path) throws(FetchError) in
                try await inspect(path, definition.name, by: rule)
            }
        case .kept(let kept):
            guard let path = kept.pending.path else {
                throw .failed(RunFailure(.local, "the candidate has no file that a program could read"))
            }
            let before = try await fingerprint(of: path)
            try await inspect(path, definition.name, by: rule)
            guard try await fingerprint(of: path) == before, try await isIntact(kept) else {
                throw .failed(
                    RunFailure(
                        .local, "\(program(rule)) changed the candidate; a check may only read it"))
            }
        }
    }

    private func inspect(_ path: String, _ pipeline: String, by rule: InspectionRule) async throws(FetchError) {
        let first = FirstLine()
        let status = try await programs.exitStatus(
            of: rule.command, ["FRESHET_CANDIDATE": path, "FRESHET_PIPELINE": pipeline], timeout: rule.timeout
        ) { [log] logging in
            if case .line(let line) = logging { first.add(line) }
            log(logging, pipeline, rule.command)
        }
        guard status != 0 else { return }
        let reason = first.line.map { ": \(PlainText.escaping($0))" } ?? ""
        throw .failed(
            RunFailure(.content, "\(program(rule)) rejected the content with exit status \(status)\(reason)"))
    }

    private func program(_ rule: InspectionRule) -> String { rule.command.first ?? "" }

    /// Whether the body is unchanged. The times of the file do not show that: a write within one tick of the kernel's
    /// clock, or through a memory map, may leave them the same.
    private func isIntact(_ kept: StoredBody) async throws(FetchError) -> Bool {
        do throws(RunFailure) {
            return try await kept.pending.isIntact()
        } catch {
            throw .failed(error)
        }
    }

    /// Attributes of a file that change when the file is replaced, and usually when it is written to.
    private struct Fingerprint: Hashable, Sendable {
        var device: UInt
        var inode: UInt
        var size: Int
        /// The times of the last changes of the inode and of the content.
        var changed: [Int]
    }

    private func fingerprint(of path: String) async throws(FetchError) -> Fingerprint {
        try await programs.workers.run("candidate") { () throws(FetchError) in
            var status = stat()
            guard lstat(path, &status) == 0 else {
                throw .failed(
                    RunFailure(.local, "cannot examine the candidate: \(String(cString: strerror(errno)))"))
            }
            return Fingerprint(
                device: status.st_dev, inode: status.st_ino, size: status.st_size,
                changed: [status.st_ctim.tv_sec, status.st_ctim.tv_nsec, status.st_mtim.tv_sec, status.st_mtim.tv_nsec])
        }
    }

    /// The first line that a program wrote.
    private final class FirstLine: Sendable {
        private let stored = Mutex<String?>(nil)
        var line: String? { stored.withLock { $0 } }
        func add(_ line: String) { stored.withLock { $0 = $0 ?? line } }
    }
}

extension TrustedPrograms.OutputHandling {
    /// Logs the output of a check.
    func logOutput(of command: [String], of pipeline: String, _ limiter: LogLimiter, _ log: Logger) {
        let fields: [JournalField: Logger.MetadataValue] = [
            .pipeline: .string(pipeline), .check: .string(Redaction.text(command.joined(separator: " "))),
        ]
        switch self {
        case .line(let line): limiter.log(.checkOutput, fields.merging([.output: .string(line)]) { $1 })
        case .leftOut(let count):
            let logs = limiter.logs(.checkOutput, .linesLeftOut)
            log.log(
                .checkOutput, text: "the check wrote {count} more lines, which are not logged",
                level: logs ? nil : .debug,
                fields.merging([.count: .stringConvertible(count)]) { $1 })
        }
    }
}
