/// Cuts what a program of the configuration, a hook or a check, writes into lines for the journal, up to a limit.
struct ProgramOutput: Sendable {
    /// The lines of one run; more are counted.
    static let mostLines = 100
    /// The bytes of a line; what is beyond is left out.
    static let lineBytes = 1_024

    private var line: [UInt8] = []
    private var isCut = false
    private var lines = 0
    /// Lines beyond the limit.
    private(set) var leftOut = 0

    /// - Returns: the lines that are complete now, without those that are empty.
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

    /// - Returns: the line that has begun, as if it had ended; nil: there is none, or too many were before it.
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
