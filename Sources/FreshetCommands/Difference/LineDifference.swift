import FreshetEventLoop
import Glibc

/// The difference of two contents, line by line, by diff(1).
enum LineDifference {
    /// The reason for which there is no result.
    struct Failure: Error {
        var message: String
    }

    static let program = "/usr/bin/diff"

    /// The unified difference without the two lines with names; empty if the contents are equal. Runs diff(1): its time
    /// is bounded also for very different contents, and its memory is about the size of both.
    static func unified(_ old: [UInt8], _ new: [UInt8]) throws(Failure) -> [UInt8] {
        let files: (OwnedDescriptor, OwnedDescriptor)
        do throws(SystemCallError) {
            files = (try .memoryFile("old", old), try .memoryFile("new", new))
        } catch {
            throw Failure(message: error.description)
        }
        defer { withExtendedLifetime(files) {} }
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw failure("pipe") }
        defer { close(ends[0]) }
        var child: pid_t = 0
        let spawned = spawn(
            ["diff", "-u", "--text", files.0.pathForOthers, files.1.pathForOthers], pipe: ends, &child)
        close(ends[1])
        guard spawned == 0 else {
            errno = spawned
            throw failure(program)
        }
        let output = readAll(ends[0])
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        // 0: equal; 1: different; others: an error, which diff(1) has printed on standard error.
        guard status & 0x7F == 0, (status >> 8) & 0xFF < 2 else {
            throw Failure(message: "\(program) failed")
        }
        // The first two lines have the paths of descriptors.
        let lines = output.split(separator: UInt8(ascii: "\n"), maxSplits: 2, omittingEmptySubsequences: false)
        return lines.count == 3 ? Array(lines[2]) : []
    }

    private static func spawn(_ arguments: [String], pipe: [Int32], _ child: inout pid_t) -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO)
        for end in pipe { posix_spawn_file_actions_addclose(&actions, end) }
        var strings = arguments.map { strdup($0) }
        strings.append(nil)
        defer { for string in strings { free(string) } }
        return posix_spawn(&child, program, &actions, nil, strings, environ)
    }

    private static func readAll(_ descriptor: Int32) -> [UInt8] {
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return output }
            output += buffer[..<count]
        }
    }

    private static func failure(_ what: String) -> Failure {
        Failure(message: "\(what): \(strerror(errno).map { String(cString: $0) } ?? "error \(errno)")")
    }
}

/// A part of a unified difference.
struct LineHunk: Encodable, Hashable {
    struct Line: Encodable, Hashable {
        var change: String
        var text: String
    }

    var oldStart: Int
    var newStart: Int
    var lines: [Line] = []

    /// Parses the result of ``LineDifference/unified(_:_:)``. Bytes that are not UTF-8 become U+FFFD.
    static func hunks(of unified: [UInt8]) -> [LineHunk] {
        var hunks: [LineHunk] = []
        for line in unified.split(separator: UInt8(ascii: "\n")) {
            let text = String(decoding: line.dropFirst(), as: UTF8.self)
            let change: String
            switch line.first {
            case UInt8(ascii: "@"):
                hunks.append(LineHunk(text))
                continue
            case UInt8(ascii: "-"): change = "removed"
            case UInt8(ascii: "+"): change = "added"
            case UInt8(ascii: " "): change = "same"
            default: continue  // "No newline at end of file"
            }
            guard let last = hunks.indices.last else { continue }
            hunks[last].lines.append(Line(change: change, text: text))
        }
        return hunks
    }

    /// Parses a header such as `@ -3,7 +3,8 @@`.
    private init(_ header: String) {
        let numbers = header.split(separator: " ").dropFirst().prefix(2).map { range in
            Int(range.dropFirst().prefix { $0 != "," }) ?? 0
        }
        oldStart = numbers.first ?? 0
        newStart = numbers.last ?? 0
    }
}
