/// Splits the output of a hook or a check into lines for the journal, up to a limit.
struct ProgramOutput: Sendable {
    /// The maximum number of lines of one run; further lines are counted.
    static let mostLines = 100
    /// The maximum number of bytes of a line; further bytes are dropped.
    static let lineBytes = 1_024

    private var line: [UInt8] = []
    private var isCut = false
    private var lines = 0
    /// The number of lines beyond the limit.
    private(set) var leftOut = 0

    /// - Returns: the lines that are complete now, without empty lines.
    mutating func take(_ bytes: some Sequence<UInt8>) -> [String] {
        var complete: [String] = []
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                if let line = finish() { complete.append(line) }
            } else if line.count < Self.lineBytes {
                line.append(byte)
            } else {
                isCut = true
            }
        }
        return complete
    }

    /// Ends the current line.
    ///
    /// - Returns: the line; nil: the line is empty or exceeds the limit.
    mutating func finish() -> String? {
        defer {
            line.removeAll(keepingCapacity: true)
            isCut = false
        }
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        guard !line.isEmpty else { return nil }
        guard lines < Self.mostLines else {
            leftOut += 1
            return nil
        }
        lines += 1
        return String(decoding: line, as: UTF8.self) + (isCut ? "…" : "")
    }
}
