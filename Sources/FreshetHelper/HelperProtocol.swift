/// A client's request to a helper: to run one program over one input.
///
/// On the wire (all numbers little-endian): the four bytes `FJQ` and the version, one byte of ``Purpose``, one byte
/// that is 1 if the input is a text (``isText``), two zero bytes, the lengths of the program and of the variables (4
/// bytes each), the input's length and the output's limit (8 bytes each); then the program, the variables and the
/// input.
package struct HelperRequest: Hashable, Sendable {
    /// The kind of result that the client needs.
    package enum Purpose: UInt8, Sendable {
        /// All outputs.
        case outputs = 0
        /// Whether the last output is neither `false` nor `null`.
        case verdict = 1
        /// All outputs as separate values: see ``HelperReply/values``.
        case values = 2
        /// Whether the input is valid in the format that ``HelperRequest/program`` names; ``ContentProbe`` checks it,
        /// and no jq program runs. The reply's bytes are the number of items in decimal digits, or empty.
        case form = 3
        /// The text that the template ``HelperRequest/program`` makes of the input, one JSON text.
        /// ``HelperRequest/variables`` is the name of the escape. An empty input is not read: the template is only
        /// parsed.
        case template = 4
    }

    /// The most bytes of a program: far more than a person writes.
    package static let maxProgram = 64 << 10
    /// The most bytes of an input: a longer input would not fit into the helper's memory after parsing.
    package static let maxInput = 256 << 20
    /// The most bytes of the variables, which are single items of a list, not lists.
    package static let maxVariables = 16 << 20

    package var purpose: Purpose
    package var program: String
    /// The values of a jq program's variables (`$name`): one JSON object with a member for each variable, or empty. The
    /// names have jq's syntax: letters, digits and `_`, no digit first.
    package var variables: [UInt8]
    /// JSON texts, or one text if ``isText`` is true.
    package var input: [UInt8]
    /// Whether the input is one text in UTF-8 instead of JSON. The program gets it as one string, without a byte order
    /// mark at its beginning.
    package var isText: Bool
    /// The most bytes of output.
    package var maxOutput: UInt64

    package init(
        _ purpose: Purpose, program: String, variables: [UInt8] = [], input: [UInt8], isText: Bool = false,
        maxOutput: UInt64
    ) {
        self.isText = isText
        self.purpose = purpose
        self.program = program
        self.variables = variables
        self.input = input
        self.maxOutput = maxOutput
    }

    /// Header, program and variables on the wire. The input follows; it is not included here, so that it is not copied.
    package var head: [UInt8] {
        let program = Array(program.utf8)
        var bytes = HelperFrame.requestMagic + [purpose.rawValue, isText ? 1 : 0, 0, 0]
        bytes.appendNumber(UInt32(truncatingIfNeeded: program.count))
        bytes.appendNumber(UInt32(truncatingIfNeeded: variables.count))
        bytes.appendNumber(UInt64(input.count))
        bytes.appendNumber(maxOutput)
        return bytes + program + variables
    }

    /// The parsed header of a request, whose lengths are within the limits.
    struct Header: Hashable {
        static let size = 32
        var purpose: Purpose
        var isText: Bool
        var program: Int
        var variables: Int
        var input: Int
        var maxOutput: UInt64

        /// Returns nil if the bytes are not a header of this version, or if a length exceeds its limit.
        init?(_ bytes: [UInt8]) {
            guard bytes.count == Self.size, Array(bytes[..<4]) == HelperFrame.requestMagic,
                let purpose = Purpose(rawValue: bytes[4])
            else { return nil }
            let program = bytes.number(at: 8, bytes: 4)
            let variables = bytes.number(at: 12, bytes: 4)
            let input = bytes.number(at: 16, bytes: 8)
            guard program <= HelperRequest.maxProgram, variables <= HelperRequest.maxVariables,
                input <= HelperRequest.maxInput
            else { return nil }
            self.purpose = purpose
            isText = bytes[5] == 1
            self.program = Int(program)
            self.variables = Int(variables)
            self.input = Int(input)
            maxOutput = bytes.number(at: 24, bytes: 8)
        }
    }
}

/// A helper's reply to a request.
///
/// On the wire: the four bytes `FJR` and the version, one byte of ``Status``, one byte of the verdict, one byte of
/// ``gaps``, one zero byte, the length of the rest (8 bytes, little-endian); then outputs or a message.
package struct HelperReply: Hashable, Sendable {
    /// How the program ended.
    package enum Status: UInt8, Sendable {
        /// `bytes` are the result, in the form of the request's ``HelperRequest/Purpose``: a jq program's outputs, each
        /// compact and with a newline; the text that a template makes.
        case done = 0
        /// The program does not compile, or the template is not valid; `bytes` are the message of jq or of the template
        /// helper.
        case invalidProgram = 1
        /// The program raised an error, or the template cannot be filled in; `bytes` are the message of jq or of the
        /// template helper.
        case failed = 2
        /// The input is invalid in its format; `bytes` are the parser's message.
        case invalidInput = 3
        /// The result is longer than the request allows.
        case outputTooLarge = 4
        /// The helper could not confine itself and did not process the request; `bytes` are the system's message.
        case notConfined = 5
    }

    /// The most bytes of a message; longer messages are truncated.
    package static let maxMessage = 4_096

    package var status: Status
    /// Whether there was an output and the last one was neither `false` nor `null`; false for a template.
    package var verdict: Bool
    /// The parts of the sandbox that the helper lacks, because the kernel does not support them.
    package var gaps: HelperSandbox.Gaps = []
    package var bytes: [UInt8]

    /// The outputs in a reply to a request with ``HelperRequest/Purpose/values``: a string's content, anything else as
    /// compact JSON. Nil if the bytes are malformed. On the wire the length precedes each output (4 bytes,
    /// little-endian).
    package var values: [[UInt8]]? {
        var values: [[UInt8]] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            guard rest.count >= 4 else { return nil }
            let length = Int(Array(rest.prefix(4)).number(at: 0, bytes: 4))
            rest = rest.dropFirst(4)
            guard rest.count >= length else { return nil }
            values.append(Array(rest.prefix(length)))
            rest = rest.dropFirst(length)
        }
        return values
    }

    package init(_ status: Status, verdict: Bool = false, bytes: [UInt8] = []) {
        self.status = status
        self.verdict = verdict
        self.bytes = bytes
    }

    package static func message(_ status: Status, _ text: String) -> HelperReply {
        HelperReply(status, bytes: Array(text.utf8.prefix(maxMessage)))
    }

    /// The header on the wire.
    var head: [UInt8] {
        var head = HelperFrame.replyMagic + [status.rawValue, verdict ? 1 : 0, gaps.rawValue, 0]
        head.appendNumber(UInt64(bytes.count))
        return head
    }

    /// Assembles a reply from pieces as they arrive.
    package struct Decoder: Sendable {
        /// The bytes are not a valid reply.
        package struct InvalidReply: Error, Hashable {}

        static let headerSize = 16
        private let limit: UInt64
        private var header: [UInt8] = []
        private var bytes: [UInt8] = []
        private var expected: Int?

        /// - Parameter maxOutput: the most bytes of output that the request allows.
        package init(maxOutput: UInt64) {
            limit = max(maxOutput, UInt64(HelperReply.maxMessage))
        }

        /// Takes a piece. Returns the reply when it is complete. Bytes after the reply are an error.
        package mutating func take(_ piece: some Collection<UInt8>) throws(InvalidReply) -> HelperReply? {
            let rest = piece.dropFirst(Self.headerSize - header.count)
            header.append(contentsOf: piece.prefix(Self.headerSize - header.count))
            guard header.count == Self.headerSize else { return nil }
            if expected == nil {
                guard Array(header[..<4]) == HelperFrame.replyMagic, Status(rawValue: header[4]) != nil else {
                    throw InvalidReply()
                }
                let length = header.number(at: 8, bytes: 8)
                guard length <= limit else { throw InvalidReply() }
                expected = Int(length)
                // Reserved once, so that nothing is copied later. The kernel commits memory as bytes arrive.
                bytes.reserveCapacity(Int(length))
            }
            bytes.append(contentsOf: rest)
            guard let expected, bytes.count >= expected else { return nil }
            guard bytes.count == expected, let status = Status(rawValue: header[4]) else { throw InvalidReply() }
            var reply = HelperReply(status, verdict: header[5] == 1, bytes: bytes)
            reply.gaps = HelperSandbox.Gaps(rawValue: header[6])
            return reply
        }
    }
}

/// The first four bytes of requests and replies. The fourth byte is the version.
///
/// The helper of jq programs is the client's own binary; that of templates is another one, `freshet-template`, which is
/// installed with it. The version detects a helper of another version, and one that is, by mistake, another binary.
enum HelperFrame {
    static let requestMagic = Array("FJQ".utf8) + [2]
    static let replyMagic = Array("FJR".utf8) + [2]
}

extension [UInt8] {
    package mutating func appendNumber(_ number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }

    /// The little-endian number in `bytes` bytes from the offset. The array must contain these bytes.
    package func number(at offset: Int, bytes: Int) -> UInt64 {
        self[offset..<(offset + bytes)].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}
