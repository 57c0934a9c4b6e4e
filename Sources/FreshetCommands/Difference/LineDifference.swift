import FreshetEventLoop

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
        let ended: (status: Int32, output: [UInt8], errorOutput: [UInt8])
        do throws(ProgramRunner.Failure) {
            ended = try ProgramRunner.runCollected(
                program, ["-u", "--text", files.0.pathForOthers, files.1.pathForOthers], withErrors: false, limit: .max)
        } catch {
            throw Failure(message: "\(program): \(error.reason)")
        }
        // 0: equal; 1: different; others: an error, which diff(1) has printed on standard error.
        guard ended.status < 2 else { throw Failure(message: "\(program) failed") }
        // The first two lines have the paths of descriptors.
        let lines = ended.output.split(separator: UInt8(ascii: "\n"), maxSplits: 2, omittingEmptySubsequences: false)
        return lines.count == 3 ? Array(lines[2]) : []
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
