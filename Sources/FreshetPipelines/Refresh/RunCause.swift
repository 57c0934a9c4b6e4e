package import FreshetModel

/// One signal as the cause of a run: its name, how often it was received, and when first and last.
package struct RunCause: Hashable, Sendable {
    package var signal: String
    package var count: Int
    package var first: BootInstant
    package var last: BootInstant
    /// The detail of its last occurrence, for people, such as `default route via enp3s0`.
    package var detail: String?
    /// The number of its last occurrence, which identifies it in the journal and for subscribers; nil for a signal
    /// without numbers, such as a timer.
    package var number: UInt64?

    package init(
        _ signal: String, count: Int = 1, first: BootInstant, last: BootInstant? = nil,
        detail: String? = nil, number: UInt64? = nil
    ) {
        self.signal = signal
        self.count = count
        self.first = first
        self.last = last ?? first
        self.detail = detail
        self.number = number
    }

    package var kind: SignalKind { SignalKind(signal: signal) }
}

extension [RunCause] {
    /// Adds a cause. A signal that is there already keeps its position, and its count grows.
    mutating func add(_ cause: RunCause) {
        guard let index = firstIndex(where: { $0.signal.hasSameBytes(as: cause.signal) }) else {
            append(cause)
            return
        }
        self[index].count += cause.count
        self[index].first = Swift.min(self[index].first, cause.first)
        if cause.last >= self[index].last {
            self[index].last = cause.last
            self[index].detail = cause.detail ?? self[index].detail
            self[index].number = cause.number
        }
    }

    /// Parses a ``summary``: it has the signals and how often each fired, but not when.
    ///
    /// - Parameter instant: the start of the run, used as the time of all causes.
    package init(summary: String, at instant: BootInstant) {
        var summary = summary
        self = summary.withUTF8 { bytes in
            Self.parts(of: bytes).map { part in
                let (name, count) = Self.name(of: part)
                return RunCause(String(decoding: name, as: UTF8.self), count: count, first: instant)
            }
        }
    }

    /// The parts between `, `. A start parses one summary of each pipeline, and to work with characters took most of
    /// that time.
    private static func parts(of summary: UnsafeBufferPointer<UInt8>) -> [Slice<UnsafeBufferPointer<UInt8>>] {
        var parts: [Slice<UnsafeBufferPointer<UInt8>>] = []
        var (start, index) = (0, 0)
        while index < summary.count {
            guard summary[index] == UInt8(ascii: ","), index + 1 < summary.count,
                summary[index + 1] == UInt8(ascii: " ")
            else {
                index += 1
                continue
            }
            if start < index { parts.append(summary[start..<index]) }
            index += 2
            start = index
        }
        if start < summary.count { parts.append(summary[start...]) }
        return parts
    }

    /// The signal and how often it fired. `file /etc/hosts (3)`: the count is at the end, since a path may contain such
    /// text.
    private static func name(
        of part: Slice<UnsafeBufferPointer<UInt8>>
    ) -> (name: Slice<UnsafeBufferPointer<UInt8>>, count: Int) {
        guard part.last == UInt8(ascii: ")"), let bracket = part.lastIndex(of: UInt8(ascii: "(")),
            bracket > part.startIndex, part[bracket - 1] == UInt8(ascii: " "),
            let count = Int(String(decoding: part[(bracket + 1)...].dropLast(), as: UTF8.self)), count > 1
        else { return (part, 1) }
        return (part[..<(bracket - 1)], count)
    }

    /// The causes as one line, for people and for the stored history: `network (2), timer`.
    package var summary: String {
        map { $0.count == 1 ? $0.signal : "\($0.signal) (\($0.count))" }.joined(separator: ", ")
    }
}
