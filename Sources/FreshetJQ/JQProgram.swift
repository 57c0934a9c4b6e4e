import CJQ

/// A compiled jq program: the owner of libjq's state. Not `Sendable`; one run at a time.
final class JQProgram {
    /// Why a program cannot be used: jq's words.
    struct Invalid: Error, Hashable {
        var message: String
    }

    private let state: OpaquePointer
    private let errors: ErrorLog

    /// Compiles a program, about 13 ms, most of it jq's own library.
    ///
    /// Modules are refused: `import`, `include` and `module` would read files wherever the program says.
    ///
    /// - Parameter variables: names that it finds as `$name`. Their values come with each run, so that a program is
    ///   compiled once for all.
    init(_ text: String, variables: [String] = []) throws(Invalid) {
        guard !text.utf8.contains(0) else { throw Invalid(message: "it has a NUL character") }
        if let word = Self.moduleDirective(text) {
            throw Invalid(message: "'\(word)' is not available: programs stand alone and read no files")
        }
        guard let state = jq_init() else { throw Invalid(message: "memory has run out") }
        self.state = state
        errors = ErrorLog()
        // jq_init of 1.6 leaves the two as the memory happened to be: `input` would call anything.
        jq_set_input_cb(state, nil, nil)
        jq_set_debug_cb(state, nil, nil)
        jq_set_error_cb(
            state,
            { log, message in
                guard let log else { return jv_free(message) }
                // The program owns its log, and libjq calls while it compiles or runs only.
                Unmanaged<ErrorLog>.fromOpaque(log).takeUnretainedValue().add(JQValue(jq_format_error(message)).words)
            }, Unmanaged.passUnretained(errors).toOpaque())
        let bound = JQVariables.binding(variables) + text
        guard jq_compile_args(state, bound, jv_object()) != 0 else { throw Invalid(message: errors.summary) }
    }

    deinit {
        var state: OpaquePointer? = state
        jq_teardown(&state)
    }

    /// Runs the program over each JSON text of the input, in order; or, of a text, once over the string that it is.
    /// For what happens to large numbers see ``JQHelper``.
    func run(
        _ purpose: JQRequest.Purpose, over input: [UInt8], isText: Bool = false,
        with variables: borrowing JQVariables = JQVariables(),
        maxOutput: UInt64
    ) -> JQReply {
        // libjq would put U+FFFD in the place of what it does not know, without a word.
        if let fault = Self.encodingFault(in: input, isText: isText) { return .message(.invalidInput, fault) }
        if isText { return run(purpose, overText: input, with: variables, maxOutput: maxOutput) }
        guard let parser = jv_parser_new(0) else { return .message(.failed, "memory has run out") }
        defer { jv_parser_free(parser) }
        return input.withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { text in
                jv_parser_set_buf(parser, text.baseAddress, Int32(text.count), 0)
                var outputs = Outputs(purpose: purpose, limit: maxOutput)
                while true {
                    let value = JQValue(jv_parser_next(parser))
                    if let error = value.error { return .message(.invalidInput, error) }
                    guard value.isValid else { return outputs.reply }
                    jq_start(state, variables.bound(to: value), 0)
                    switch takeOutputs(&outputs) {
                    case .next: break
                    case .halted: return outputs.reply
                    case .ended(let reply): return reply
                    }
                }
            }
        }
    }

    private func run(
        _ purpose: JQRequest.Purpose, overText input: [UInt8], with variables: borrowing JQVariables, maxOutput: UInt64
    ) -> JQReply {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let value = JQValue(text: input.starts(with: mark) ? input.dropFirst(mark.count) : input[...])
        var outputs = Outputs(purpose: purpose, limit: maxOutput)
        jq_start(state, variables.bound(to: value), 0)
        if case .ended(let reply) = takeOutputs(&outputs) { return reply }
        return outputs.reply
    }

    /// Why the input cannot be read, which has to be UTF-8, as JSON is (RFC 8259, 8.1); nil: it is UTF-8.
    private static func encodingFault(in input: [UInt8], isText: Bool) -> String? {
        do throws(UTF8.ValidationError) {
            _ = try UTF8Span(validating: input.span)
            return nil
        } catch {
            return
                "it is not UTF-8 at byte \(error.byteOffsets.lowerBound + 1), as \(isText ? "it" : "JSON") has to be; perhaps it is in "
                + "another character set, or cut off"
        }
    }

    private struct Outputs {
        let purpose: JQRequest.Purpose
        let limit: UInt64
        var bytes: [UInt8] = []
        var verdict = false

        /// False if the limit is passed.
        mutating func take(_ value: borrowing JQValue) -> Bool {
            verdict = value.isTruthy
            switch purpose {
            case .outputs: return value.dump(to: &bytes, limit: limit)
            case .verdict: return true
            case .values: return value.content(to: &bytes, limit: limit)
            case .form: return true  // safe: such a request runs no program
            }
        }

        var reply: JQReply { JQReply(.done, verdict: verdict, bytes: bytes) }
    }

    private enum End {
        case next
        /// `halt`: no further input.
        case halted
        case ended(JQReply)
    }

    private func takeOutputs(_ outputs: inout Outputs) -> End {
        while true {
            let value = JQValue(jq_next(state))
            if let error = value.error { return .ended(.message(.failed, error)) }
            guard value.isValid else { break }
            guard outputs.take(value) else { return .ended(JQReply(.outputTooLarge)) }
        }
        guard jq_halted(state) != 0 else { return .next }
        // `halt` has no exit code, `halt_error` has one and perhaps a message.
        let code = JQValue(jq_get_exit_code(state))
        let message = JQValue(jq_get_error_message(state))
        guard code.isValid else { return .halted }
        return .ended(.message(.failed, message.isValid ? message.words : "halt_error"))
    }

    /// The directive with which a program begins, if it does: jq's grammar allows them nowhere else.
    static func moduleDirective(_ text: String) -> String? {
        var rest = text.unicodeScalars[...]
        while let first = rest.first {
            if first == "#" {
                rest = rest.drop { $0 != "\n" }
            } else if first.properties.isWhitespace {
                rest.removeFirst()
            } else {
                break
            }
        }
        let word = rest.prefix {
            ("a"..."z").contains($0) || ("A"..."Z").contains($0) || ("0"..."9").contains($0) || $0 == "_"
        }
        return ["import", "include", "module"].first { $0.unicodeScalars.elementsEqual(word) }
    }
}

/// What libjq reports while it compiles.
private final class ErrorLog {
    /// More is noise: the first errors are those that matter.
    static let limit = 8
    private var messages: [String] = []

    func add(_ message: String) {
        guard messages.count < Self.limit else { return }
        messages.append(message)
    }

    /// The messages in one line, without jq's prefix, its hint at shells and its count.
    var summary: String {
        let prefix: [Substring] = ["jq:", "error:"]
        let hint: [Substring] = ["(Unix", "shell", "quoting", "issues?)"]
        let lines = messages.compactMap { message -> String? in
            guard !message.hasSuffix("compile error"), !message.hasSuffix("compile errors") else { return nil }
            var words = message.split(whereSeparator: \.isWhitespace)
            if words.starts(with: prefix) { words.removeFirst(prefix.count) }
            if let start = words.indices.first(where: { words[$0...].starts(with: hint) }) {
                words.removeSubrange(start..<(start + hint.count))
            }
            return words.joined(separator: " ")
        }
        return lines.isEmpty ? "it does not compile" : lines.joined(separator: "; ")
    }
}

/// The programs compiled last, so that identical ones are compiled once.
struct ProgramCache: ~Copyable {
    /// A helper lives for seconds and serves the pipelines that run in them.
    static let limit = 16

    /// The one used last comes last.
    private var entries: [(text: String, variables: [String], program: JQProgram)] = []

    var count: Int { entries.count }

    mutating func program(_ text: String, variables: [String] = []) throws(JQProgram.Invalid) -> JQProgram {
        if let index = entries.firstIndex(where: { $0.text == text && $0.variables == variables }) {
            let entry = entries.remove(at: index)
            entries.append(entry)
            return entry.program
        }
        let program = try JQProgram(text, variables: variables)
        if entries.count == Self.limit { entries.removeFirst() }
        entries.append((text, variables, program))
        return program
    }
}
