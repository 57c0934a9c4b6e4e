import FreshetEventLoop
import FreshetSystemd
import Glibc

/// The line-by-line difference of two texts, from diff(1).
struct TextDifference: Sendable {
    /// The difference in the unified format, from the first `@@` on. Control characters are escaped.
    var lines: [String]
    /// There are more lines.
    var isCut: Bool

    /// The maximum size of a text that is compared, in bytes. People do not read the difference of larger texts.
    static let sizeLimit = 8 << 20
    /// The maximum number of lines in the result.
    static let lineLimit = 200
    /// The maximum number of bytes of each line in the result.
    static let lineWidth = 400
    /// The time limit for diff(1). Only texts that are made for it take longer.
    static let timeLimit: Duration = .seconds(10)
    static let tool = "/usr/bin/diff"

    /// Nil: a content is not text or is too large, or diff(1) is not installed.
    static func between(_ old: [UInt8], and new: [UInt8], on loop: EventLoop) async -> TextDifference? {
        guard isText(old), isText(new), access(tool, X_OK) == 0 else { return nil }
        guard let before = try? OwnedDescriptor.memoryFile("old", old),
            let after = try? OwnedDescriptor.memoryFile("new", new),
            let output = try? OwnedDescriptor.memoryFile("difference", [])
        else { return nil }
        // A child gets three descriptors, and cannot open those of this process, which forbids inspection
        // (``ProcessInspection``). So the old text is the child's standard error, too: diff(1) writes there only when
        // it ends with status 2.
        let command = ChildProcess.Command(
            path: tool, arguments: ["-u", "--speed-large-files", "/proc/self/fd/2", "-"],
            environment: ["LANG": "C.UTF-8"])
        guard
            let child = try? ChildProcess(
                loop, command, input: after.rawValue, output: output.rawValue, error: before.rawValue)
        else { return nil }
        let end = LoopTimer(loop) { child.signal(SIGKILL) }
        end.arm(at: .now + timeLimit)
        defer { end.disarm() }
        let exit = await withTaskCancellationHandler {
            await child.wait()
        } onCancel: {
            child.signal(SIGKILL)
        }
        // 0: they are equal; 1: they differ; 2: trouble.
        guard exit == .exited(status: 0) || exit == .exited(status: 1) else { return nil }
        let (bytes, isWhole) = read(output)
        return TextDifference(bytes, isWhole: isWhole)
    }

    /// Parses the output of diff(1).
    ///
    /// - Parameter isWhole: whether the output is complete.
    init(_ output: [UInt8], isWhole: Bool = true) {
        // The first two lines name the files.
        var all = output.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropFirst(2)
        // After the last line feed there is an empty line; in incomplete output the last line is incomplete too.
        if all.last?.isEmpty == true || !isWhole { all = all.dropLast() }
        lines = all.prefix(Self.lineLimit).map { line in
            let shown = PlainText.escaping(String(decoding: line.prefix(Self.lineWidth), as: UTF8.self))
            return shown + (line.count > Self.lineWidth ? "…" : "")
        }
        isCut = all.count > Self.lineLimit || !isWhole
    }

    /// Whether the bytes are UTF-8 without NUL, and not too large.
    private static func isText(_ bytes: [UInt8]) -> Bool {
        guard bytes.count <= sizeLimit, !bytes.contains(0) else { return false }
        return (try? UTF8Span(validating: bytes.span)) != nil
    }

    private static func read(_ file: OwnedDescriptor) -> (bytes: [UInt8], isWhole: Bool) {
        // A little more than can be shown, to detect that there is more.
        let limit = lineLimit * (lineWidth + 1) + (64 << 10)
        let isWhole = lseek(file.rawValue, 0, SEEK_END) <= off_t(limit)
        lseek(file.rawValue, 0, SEEK_SET)
        let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            while count < limit {
                let piece = Glibc.read(file.rawValue, buffer.baseAddress?.advanced(by: count), limit - count)
                guard piece > 0 else { break }
                count += piece
            }
        }
        return (bytes, isWhole)
    }
}
